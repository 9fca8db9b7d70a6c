//! A sparse index from line offsets to byte positions.

use serde::{Deserialize, Serialize};

/// The first line of a log whose beginning was dropped.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrimmedHeader {
    /// Number of dropped lines.
    pub(super) start: u64,
}

/// The number of lines of a log, and the byte positions of some of them.
///
/// Sparse, so that a log of 64 MiB takes some kilobytes: a read seeks to the nearest mark and
/// skips lines from there.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// Offset of the first line, that is, the number of dropped lines.
    pub(super) start: u64,
    /// Number of lines in the file.
    lines: u64,
    /// Offsets and byte positions of the marked lines, in order.
    marks: Vec<(u64, u64)>,
    /// Minimum distance between marks in bytes.
    distance: u64,
}

impl LineIndex {
    /// Builds the index of a whole log.
    pub(super) fn of(bytes: &[u8], distance: u64) -> Self {
        let mut index = Self {
            distance,
            ..Self::default()
        };
        let mut is_first = true;
        for (at, line) in lines(bytes) {
            match serde_json::from_slice::<TrimmedHeader>(line) {
                Ok(TrimmedHeader { start }) if is_first => index.start = start,
                _ => index.push(at),
            }
            is_first = false;
        }
        index
    }

    /// Returns the offset behind the last line.
    pub(super) fn end(&self) -> u64 {
        self.start + self.lines
    }

    /// Records an appended line that begins at `byte`.
    pub(super) fn push(&mut self, byte: u64) {
        let is_far = |(_, marked): &(u64, u64)| byte - marked >= self.distance;
        if self.marks.last().is_none_or(is_far) {
            self.marks.push((self.end(), byte));
        }
        self.lines += 1;
    }

    /// Returns the last marked line at or before `offset` with its byte position, or the first line.
    pub(super) fn before(&self, offset: u64) -> (u64, u64) {
        let index = self.marks.partition_point(|(marked, _)| *marked <= offset);
        let mark = index.checked_sub(1).and_then(|index| self.marks.get(index));
        mark.copied()
            .unwrap_or((self.start, self.marks.first().map_or(0, |(_, byte)| *byte)))
    }

    /// Returns a byte position at or behind the end of all lines before `offset`; `None` means the
    /// end of the file.
    pub(super) fn byte_after(&self, offset: u64) -> Option<u64> {
        let index = self.marks.partition_point(|(marked, _)| *marked < offset);
        self.marks.get(index).map(|(_, byte)| *byte)
    }

    /// Returns the offset of the first marked line that begins at `byte` or later, or the end.
    pub(super) fn line_from(&self, byte: u64) -> u64 {
        let index = self.marks.partition_point(|(_, marked)| *marked < byte);
        self.marks.get(index).map_or(self.end(), |(offset, _)| *offset)
    }
}

/// Iterates over the non-empty lines with their byte positions. Torn and damaged lines count, so
/// that offsets do not depend on the lines that can be parsed.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let start = at;
        at += line.len() as u64;
        (start, rockbot_core::files::without_bom(line).trim_ascii())
    });
    lines.filter(|(_, line)| !line.is_empty())
}
