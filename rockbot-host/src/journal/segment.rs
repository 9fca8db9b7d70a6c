//! Segment files: appending whole lines, reading them back, repairing a torn end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::private_file;

/// A segment that is being rewritten. What a crash leaves of it is overwritten by the next one.
const TEMPORARY: &str = "rewriting.tmp";

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    number: u32,
    len: u64,
    /// Whether the last write may have left part of a line.
    torn: bool,
}

impl Writer {
    /// Opens segment `number` for appending, and closes a line that a crash left open.
    pub(super) fn open(folder: &Path, number: u32) -> io::Result<Self> {
        let mut file = private_file::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path(folder, number))?;
        sync_folder(folder);
        let len = file.metadata()?.len();
        let mut torn = false;
        if len > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            torn = last != *b"\n";
        }
        Ok(Self {
            file,
            number,
            len,
            torn,
        })
    }

    /// Appends `lines`, all in one write. Returns where they begin.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<Place> {
        if self.torn {
            // What stands after the last newline is nobody's record; it must not be glued to the next one.
            self.file.write_all(b"\n")?;
            self.len += 1;
            self.torn = false;
        }
        let place = Place {
            segment: self.number,
            offset: self.len,
        };
        if let Err(error) = self.file.write_all(lines) {
            self.torn = true;
            self.len = self.file.metadata().map_or(self.len, |metadata| metadata.len());
            return Err(error);
        }
        self.len += lines.len() as u64;
        Ok(place)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// A second handle of the same file, to sync it without holding up writers.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Writes a segment again with only the lines at `places`, in one step that a crash cannot leave half done.
/// Returns where they are now.
pub(super) fn rewrite(folder: &Path, number: u32, places: &[Place]) -> io::Result<Vec<Place>> {
    let (mut lines, mut moved) = (Vec::new(), Vec::with_capacity(places.len()));
    for place in places {
        moved.push(Place {
            segment: number,
            offset: lines.len() as u64,
        });
        lines.extend(read_line(folder, *place)?);
    }
    let temporary = folder.join(TEMPORARY);
    let mut file = private_file::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temporary)?;
    file.write_all(&lines)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path(folder, number))?;
    sync_folder(folder);
    Ok(moved)
}

/// How many lines a segment has.
pub(super) fn count(folder: &Path, number: u32) -> io::Result<usize> {
    let mut lines = 0;
    read(folder, number, 0, |_, _| {
        lines += 1;
        true
    })?;
    Ok(lines)
}

/// Makes new names in the folder survive power loss, where the system can do that.
fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// The numbers of the segments in `folder`, in order.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u32> = name
            .to_str()
            .and_then(|name| name.strip_prefix("turns-")?.strip_suffix(".jsonl")?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads the lines of a segment, each with its place.
pub(super) fn read(
    folder: &Path,
    number: u32,
    from: u64,
    mut each: impl FnMut(Place, &[u8]) -> bool,
) -> io::Result<()> {
    let mut file = File::open(path(folder, number))?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut offset, mut line) = (from, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0
            || !each(
                Place {
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

/// Reads the one line at `place`.
pub(super) fn read_line(folder: &Path, place: Place) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    read(folder, place.segment, place.offset, |_, line| {
        found = line.to_vec();
        false
    })?;
    Ok(found)
}

pub(super) fn remove(folder: &Path, number: u32) -> io::Result<()> {
    std::fs::remove_file(path(folder, number))
}

fn path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("turns-{number:08}.jsonl"))
}
