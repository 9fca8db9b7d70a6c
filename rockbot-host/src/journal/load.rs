//! Loading: the index is rebuilt from all segments when a journal is opened.

use std::io;

use rockbot_core::files::DataFolder;

use super::index::RunIndex;
use super::line;
use super::segment::{self, SegmentWriter};

/// Reads all segments in order and opens the last one for appending.
///
/// An unreadable line is skipped with a warning and stays in its file. It may be a torn write, or the work of another
/// program; in both cases removing it could only lose what an operator might still recover.
pub(super) fn load(folder: &DataFolder) -> io::Result<(SegmentWriter, RunIndex)> {
    folder.remove_drafts(|_| false, |name| segment::number(name).is_some());
    let numbers = segment::numbers(folder)?;
    let (mut index, mut unreadable) = (RunIndex::default(), 0_u64);
    for number in &numbers {
        segment::read(folder, *number, 0, |location, line| {
            match line::parse(line) {
                Ok(line) => index.apply(location, &line),
                Err(_) => unreadable += u64::from(!line.trim_ascii().is_empty()),
            }
            true
        })?;
    }
    if unreadable > 0 {
        tracing::warn!(
            lines = unreadable,
            folder = %folder.path().display(),
            "the turn journal has unreadable lines; they are skipped and left in place"
        );
    }
    Ok((
        SegmentWriter::open(folder, numbers.last().copied().unwrap_or(1))?,
        index,
    ))
}
