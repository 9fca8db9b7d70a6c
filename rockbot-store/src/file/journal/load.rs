//! Loading: the index is rebuilt from all segments when a journal is opened.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use rockbot_core::files::DataFolder;

use super::head::SegmentHeads;
use super::index::RunIndex;
use super::segment::{self, SegmentWriter};
use super::segment_index;

/// Maximum number of segments that are read at once. Meanwhile the heads of all their lines are
/// in memory.
const MAX_READERS: usize = 8;

/// Reads all segments in order and opens the last segment for appending.
///
/// An unreadable line is skipped with a warning and stays in its file. It may be a torn write, or
/// the work of another program; in both cases removing it could only lose data that an operator
/// might still recover.
pub(super) fn load(folder: &DataFolder) -> io::Result<(SegmentWriter, RunIndex)> {
    let is_ours = |name: &str| {
        segment::number(name)
            .or_else(|| segment::number_of_index(name))
            .is_some()
    };
    folder.remove_drafts(|_| false, is_ours);
    let numbers = segment::numbers(folder)?;
    remove_lone_indexes(folder, &numbers)?;
    let mut index = RunIndex::default();
    let mut unreadable = 0_u64;
    let readers = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_READERS);
    for group in numbers.chunks(readers) {
        for segment in heads_of(folder, group, numbers.last().copied())? {
            unreadable += segment.unreadable;
            for (location, head) in segment.heads {
                index.apply(location, head);
            }
        }
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

/// Removes indexes whose segment is gone: one may have been written while its segment was removed.
fn remove_lone_indexes(folder: &DataFolder, numbers: &[u32]) -> io::Result<()> {
    let files = folder.list("")?;
    let indexes = files.iter().filter_map(|file| segment::number_of_index(&file.name));
    for number in indexes.filter(|number| numbers.binary_search(number).is_err()) {
        folder.remove(&segment::index_name(number))?;
    }
    Ok(())
}

/// Reads the heads of several segments, each on a thread of its own: most of the time goes into
/// checking the JSON of segments without an index. The last segment never has an index.
fn heads_of(folder: &DataFolder, numbers: &[u32], last: Option<u32>) -> io::Result<Vec<SegmentHeads>> {
    thread::scope(|scope| {
        let read = |number: &u32| {
            let number = *number;
            scope.spawn(move || {
                if Some(number) == last {
                    SegmentHeads::read(&segment::open(folder, number)?, number)
                } else {
                    heads_of_closed(folder, number)
                }
            })
        };
        let readers: Vec<_> = numbers.iter().map(read).collect();
        let heads = readers.into_iter().map(|reader| reader.join());
        heads
            .map(|heads| heads.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// Returns the heads of a closed segment by its index, or by its lines if it has no index.
fn heads_of_closed(folder: &DataFolder, number: u32) -> io::Result<SegmentHeads> {
    match segment_index::read(folder, number) {
        Ok(Some(heads)) => return Ok(heads),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, segment = number, "index of a turn journal's segment unreadable; reading all of its lines");
        }
    }
    SegmentHeads::read(&segment::open(folder, number)?, number)
}
