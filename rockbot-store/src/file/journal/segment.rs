//! Segment files: their names, appending, and reading lines by location.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use rockbot_core::files::{DataFolder, FileError, FileHandle, LineFile};

/// The location of a line. Locations are ordered as their lines were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RecordLocation {
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// The segment that lines are appended to.
#[derive(Debug)]
pub(super) struct SegmentWriter {
    file: LineFile,
    number: u32,
    /// `false` after a sync of the file or of its name failed. The system may have forgotten the
    /// bytes that it could not write, so that later syncs succeed without them.
    is_durable: bool,
}

impl SegmentWriter {
    /// Opens segment `number` for appending, and creates it if it does not exist.
    pub(super) fn open(folder: &DataFolder, number: u32) -> Result<Self, FileError> {
        let name = name(number);
        let file = folder.lines(&name)?;
        // Syncing the directory entry makes the file's name survive power loss, where the system
        // supports it.
        let is_durable = folder.sync(&name).is_ok();
        Ok(Self {
            file,
            number,
            is_durable,
        })
    }

    /// Records that a sync failed.
    pub(super) fn distrust(&mut self) {
        self.is_durable = false;
    }

    /// Writes the segment anew and waits for the disk, if a sync of it failed. Readers see the same
    /// lines all the while.
    pub(super) fn confirm(&mut self, folder: &DataFolder) -> Result<(), FileError> {
        if self.is_durable {
            return Ok(());
        }
        let name = name(self.number);
        let lines = folder.read(&name, u64::MAX - 1)?.unwrap_or_default();
        let replaced = folder.replace(&name, &lines);
        if matches!(replaced, Ok(()) | Err(FileError::NotDurable { .. })) {
            // Appends must reach the file that has the name now.
            self.file = folder.lines(&name)?;
        }
        self.is_durable = replaced.is_ok();
        replaced
    }

    /// Appends `lines` with one write and returns the location of the first line.
    ///
    /// One write keeps the lines of an append together; if it is torn by a crash, at most the last
    /// line is incomplete.
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

    /// Returns a second handle to the file, so that syncing it does not block writers.
    pub(super) fn handle(&self) -> Result<FileHandle, FileError> {
        self.file.handle()
    }
}

/// Rewrites a segment with only the lines at `locations`, and returns their new locations.
///
/// The file is replaced atomically: after a crash it has either the old or the new content.
pub(super) fn rewrite(
    folder: &DataFolder,
    number: u32,
    locations: &[RecordLocation],
) -> io::Result<Vec<RecordLocation>> {
    let mut lines = Vec::new();
    let mut moved = Vec::with_capacity(locations.len());
    for location in locations {
        moved.push(RecordLocation {
            segment: number,
            offset: lines.len() as u64,
        });
        lines.extend(read_line(folder, *location)?);
    }
    match folder.replace(&name(number), &lines) {
        // The lines have moved, whatever survives a power failure: the segment before it has the same
        // lines, and more.
        Ok(()) | Err(FileError::NotDurable { .. }) => Ok(moved),
        Err(error) => Err(error.into()),
    }
}

/// Counts the lines of a segment.
pub(super) fn count(folder: &DataFolder, number: u32) -> io::Result<usize> {
    let mut lines = 0;
    read(folder, number, 0, |_, _| {
        lines += 1;
        true
    })?;
    Ok(lines)
}

/// Returns the number of the segment with this file name; `None` for other files.
pub(super) fn number(name: &str) -> Option<u32> {
    name.strip_prefix("turns-")?.strip_suffix(".jsonl")?.parse().ok()
}

/// Lists the numbers of the segments in `folder` in ascending order.
pub(super) fn numbers(folder: &DataFolder) -> Result<Vec<u32>, FileError> {
    let files = folder.list("")?;
    let mut numbers: Vec<u32> = files.iter().filter_map(|file| number(&file.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads the lines of a segment from offset `from` on, until `each` returns `false`.
pub(super) fn read(
    folder: &DataFolder,
    number: u32,
    from: u64,
    each: impl FnMut(RecordLocation, &[u8]) -> bool,
) -> io::Result<()> {
    read_file(&open(folder, number)?, number, from, each)
}

/// Reads the lines of a segment that is open, as [`read`] does.
pub(super) fn read_file(
    mut file: &File,
    number: u32,
    from: u64,
    mut each: impl FnMut(RecordLocation, &[u8]) -> bool,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut offset = from;
    let mut line = Vec::new();
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

/// Reads the line at `location`.
pub(super) fn read_line(folder: &DataFolder, location: RecordLocation) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read(folder, location.segment, location.offset, |_, line| {
        bytes = line.to_vec();
        false
    })?;
    Ok(bytes)
}

/// Opens a segment for reading.
pub(super) fn open(folder: &DataFolder, number: u32) -> io::Result<File> {
    let file = folder.file(&name(number))?;
    Ok(file.ok_or(io::ErrorKind::NotFound)?)
}

/// Removes a segment and its index.
pub(super) fn remove(folder: &DataFolder, number: u32) -> Result<(), FileError> {
    folder.remove(&name(number))?;
    folder.remove(&index_name(number)).map(|_| ())
}

/// Returns the number of the segment whose index has this file name; `None` for other files.
pub(super) fn number_of_index(name: &str) -> Option<u32> {
    name.strip_prefix("turns-")?.strip_suffix(".index")?.parse().ok()
}

/// Returns the file name of the index of a segment.
pub(super) fn index_name(number: u32) -> String {
    format!("turns-{number:08}.index")
}

fn name(number: u32) -> String {
    format!("turns-{number:08}.jsonl")
}
