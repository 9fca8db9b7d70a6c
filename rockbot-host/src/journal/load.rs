//! Loading: the index is rebuilt from all segments when a journal is opened.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use rockbot_core::files::DataFolder;

use super::head::{self, LineHead};
use super::index::RunIndex;
use super::segment::{self, RecordLocation, SegmentWriter};

/// Maximum number of segments that are read at once. Of each, the heads of all lines are in memory meanwhile.
const MAX_READERS: usize = 8;

/// The heads of the lines of one segment, in order.
#[derive(Debug, Default)]
struct SegmentHeads {
    heads: Vec<(RecordLocation, LineHead)>,
    unreadable: u64,
}

/// Reads all segments in order and opens the last one for appending.
///
/// An unreadable line is skipped with a warning and stays in its file. It may be a torn write, or the work of another
/// program; in both cases removing it could only lose what an operator might still recover.
pub(super) fn load(folder: &DataFolder) -> io::Result<(SegmentWriter, RunIndex)> {
    folder.remove_drafts(|_| false, |name| segment::number(name).is_some());
    let numbers = segment::numbers(folder)?;
    let (mut index, mut unreadable) = (RunIndex::default(), 0_u64);
    let readers = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_READERS);
    for group in numbers.chunks(readers) {
        for segment in heads_of(folder, group)? {
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

/// Reads the heads of several segments, each on a thread of its own: most of the time goes into checking the JSON.
fn heads_of(folder: &DataFolder, numbers: &[u32]) -> io::Result<Vec<SegmentHeads>> {
    thread::scope(|scope| {
        let read = |number: &u32| {
            let number = *number;
            scope.spawn(move || heads(folder, number))
        };
        let readers: Vec<_> = numbers.iter().map(read).collect();
        let heads = readers.into_iter().map(|reader| reader.join());
        heads
            .map(|heads| heads.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

fn heads(folder: &DataFolder, number: u32) -> io::Result<SegmentHeads> {
    let mut segment = SegmentHeads::default();
    segment::read(folder, number, 0, |location, line| {
        match head::parse(line) {
            Ok(head) => segment.heads.push((location, head)),
            Err(_) => segment.unreadable += u64::from(!line.trim_ascii().is_empty()),
        }
        true
    })?;
    Ok(segment)
}
