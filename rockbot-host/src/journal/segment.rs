//! Segment files: which there are, where their lines are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use rockbot_core::files::{DataFolder, FileError, LineFile};

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RecordLocation {
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct SegmentWriter {
    file: LineFile,
    number: u32,
}

impl SegmentWriter {
    /// Opens segment `number` for appending.
    pub(super) fn open(folder: &DataFolder, number: u32) -> Result<Self, FileError> {
        let name = name(number);
        let file = folder.lines(&name)?;
        // Makes its name survive power loss, where the system can do that.
        let _ = folder.sync(&name);
        Ok(Self { file, number })
    }

    /// Appends `lines`, all in one write. Returns where they begin.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<RecordLocation, FileError> {
        Ok(RecordLocation {
            segment: self.number,
            offset: self.file.append(lines)?,
        })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// A second handle of the same file, to sync it without holding up writers.
    pub(super) fn handle(&self) -> Result<File, FileError> {
        self.file.handle()
    }
}

/// Writes a segment again with only the lines at `locations`, in one step that a crash cannot leave half done.
/// Returns where they are now.
pub(super) fn rewrite(
    folder: &DataFolder,
    number: u32,
    locations: &[RecordLocation],
) -> io::Result<Vec<RecordLocation>> {
    let (mut lines, mut moved) = (Vec::new(), Vec::with_capacity(locations.len()));
    for location in locations {
        moved.push(RecordLocation {
            segment: number,
            offset: lines.len() as u64,
        });
        lines.extend(read_line(folder, *location)?);
    }
    folder.replace(&name(number), &lines)?;
    Ok(moved)
}

/// How many lines a segment has.
pub(super) fn count(folder: &DataFolder, number: u32) -> io::Result<usize> {
    let mut lines = 0;
    read(folder, number, 0, |_, _| {
        lines += 1;
        true
    })?;
    Ok(lines)
}

/// The numbers of the segments in `folder`, in order.
pub(super) fn numbers(folder: &DataFolder) -> Result<Vec<u32>, FileError> {
    let number = |name: &str| name.strip_prefix("turns-")?.strip_suffix(".jsonl")?.parse().ok();
    let found = folder.list("")?;
    let mut numbers: Vec<u32> = found.iter().filter_map(|found| number(&found.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads the lines of a segment, each with its location.
pub(super) fn read(
    folder: &DataFolder,
    number: u32,
    from: u64,
    mut each: impl FnMut(RecordLocation, &[u8]) -> bool,
) -> io::Result<()> {
    let file = folder.file(&name(number))?;
    let mut file = file.ok_or(io::ErrorKind::NotFound)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut offset, mut line) = (from, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0
            || !each(
                RecordLocation {
                    segment: number,
                    offset,
                },
                &line,
            )
        {
            return Ok(());
        }
        offset += read as u64;
    }
}

/// Reads the one line at `location`.
pub(super) fn read_line(folder: &DataFolder, location: RecordLocation) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    read(folder, location.segment, location.offset, |_, line| {
        found = line.to_vec();
        false
    })?;
    Ok(found)
}

pub(super) fn remove(folder: &DataFolder, number: u32) -> Result<(), FileError> {
    folder.remove(&name(number)).map(|_| ())
}

fn name(number: u32) -> String {
    format!("turns-{number:08}.jsonl")
}
