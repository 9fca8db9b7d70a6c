//! Where the lines of a log stand.

use serde::{Deserialize, Serialize};

/// The first line of a log whose beginning was forgotten.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrimmedHeader {
    /// How many lines were forgotten.
    pub(super) start: u64,
}

/// The lines of a log, and where some of them begin.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// How many lines were forgotten.
    pub(super) start: u64,
    /// How many lines there are.
    lines: u64,
    /// The offset of some lines and the byte at which they begin, in order.
    marks: Vec<(u64, u64)>,
    /// How many bytes there are between marks, about.
    distance: u64,
}

impl LineIndex {
    /// Reads a log from its beginning.
    pub(super) fn of(bytes: &[u8], distance: u64) -> Self {
        let mut positions = Self {
            distance,
            ..Self::default()
        };
        let mut is_first = true;
        for (at, line) in lines(bytes) {
            match serde_json::from_slice::<TrimmedHeader>(line) {
                Ok(TrimmedHeader { start }) if is_first => positions.start = start,
                _ => positions.push(at),
            }
            is_first = false;
        }
        positions
    }

    /// The position behind the last line.
    pub(super) fn end(&self) -> u64 {
        self.start + self.lines
    }

    /// There is one more line, which begins at `byte`.
    pub(super) fn push(&mut self, byte: u64) {
        let is_far = |(_, marked): &(u64, u64)| byte - marked >= self.distance;
        if self.marks.last().is_none_or(is_far) {
            self.marks.push((self.end(), byte));
        }
        self.lines += 1;
    }

    /// A line not behind `offset`, and the byte at which it begins; the beginning when there is none.
    pub(super) fn before(&self, offset: u64) -> (u64, u64) {
        let index = self.marks.partition_point(|(marked, _)| *marked <= offset);
        let mark = index.checked_sub(1).and_then(|index| self.marks.get(index));
        mark.copied()
            .unwrap_or((self.start, self.marks.first().map_or(0, |(_, byte)| *byte)))
    }

    /// A byte behind which nothing before `offset` stands; `None` means the end.
    pub(super) fn byte_after(&self, offset: u64) -> Option<u64> {
        let index = self.marks.partition_point(|(marked, _)| *marked < offset);
        self.marks.get(index).map(|(_, byte)| *byte)
    }

    /// The first marked line that begins at `byte` or later; the end when there is none.
    pub(super) fn line_from(&self, byte: u64) -> u64 {
        let index = self.marks.partition_point(|(_, marked)| *marked < byte);
        self.marks.get(index).map_or(self.end(), |(offset, _)| *offset)
    }
}

/// The lines that have something in them, and where each begins. A torn or damaged line is one, too.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let start = at;
        at += line.len() as u64;
        (start, rockbot_core::files::without_bom(line).trim_ascii())
    });
    lines.filter(|(_, line)| !line.is_empty())
}
