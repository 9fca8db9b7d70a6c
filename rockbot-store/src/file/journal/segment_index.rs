//! The index of a closed segment: a file beside it with the heads of its lines, so that a start
//! need not check their JSON.
//!
//! The file is a cache. It has the length and the checksum of the segment, and a checksum of its
//! own; an index that does not fit is ignored, and the lines are read. A run that began and ended
//! in the segment, as nearly all do, is an entry of 40 bytes. For the other runs the index has
//! the locations of their lines.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};

use rockbot_core::Timestamp;
use rockbot_core::files::DataFolder;

use super::ended_run::EndedRun;
use super::head::{self, LineHead, SegmentHeads};
use super::run_hash::RunHash;
use super::segment::{self, RecordLocation};

/// Length of the shortest segment that is worth an index: the lines of shorter segments are read
/// in milliseconds.
pub(super) const MIN_INDEXED: u64 = 1 << 20;

/// Beginning of an index, with the version of its form.
const MAGIC: u64 = u64::from_le_bytes(*b"rbindex1");

/// Length of the beginning: magic number, length and checksum of the segment, number of
/// unreadable lines, and number of entries.
const HEADER_LEN: usize = 40;

/// Length of an entry: run, first and last offset, time of the end.
const ENTRY_LEN: usize = 40;

/// Length of an offset, and of the index's own checksum at its end.
const WORD: usize = 8;

/// Maximum length of an index that is read. Each entry stands for two lines at least.
const MAX_LEN: u64 = 256 << 20;

/// The lines of a segment as far as runs that ended in it, and everything else by its location.
#[derive(Debug, Default)]
struct Entries {
    ended: Vec<(RunHash, EndedRun)>,
    others: Vec<u64>,
    unreadable: u64,
}

/// Reads the lines of a closed segment and writes its index.
pub(super) fn write(folder: &DataFolder, number: u32) -> io::Result<()> {
    // Both are read of one open file: the segment may be compacted meanwhile, which replaces the
    // file of that name.
    let file = segment::open(folder, number)?;
    let heads = SegmentHeads::read(&file, number)?;
    let (len, checksum) = checksum_of(&file)?;
    let bytes = Entries::of(heads).to_bytes(len, checksum);
    Ok(folder.replace(&segment::index_name(number), &bytes)?)
}

/// Returns the heads of the lines of a segment from its index; `None` if it has no index that
/// fits.
pub(super) fn read(folder: &DataFolder, number: u32) -> io::Result<Option<SegmentHeads>> {
    let Some(bytes) = folder.read(&segment::index_name(number), MAX_LEN)? else {
        return Ok(None);
    };
    let (len, checksum) = checksum_of(&segment::open(folder, number)?)?;
    let Some(entries) = Entries::parse(&bytes, number, len, checksum) else {
        return Ok(None);
    };
    entries.into_heads(folder, number).map(Some)
}

/// Returns the length of a segment and the checksum of its bytes.
fn checksum_of(mut file: &File) -> io::Result<(u64, u32)> {
    file.rewind()?;
    let (mut buffer, mut len, mut hasher) = (vec![0; 1 << 18], 0, crc32fast::Hasher::new());
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((len, hasher.finalize())),
            read => {
                hasher.update(&buffer[..read]);
                len += read as u64;
            }
        }
    }
}

impl Entries {
    fn of(heads: SegmentHeads) -> Self {
        let mut entries = Self {
            unreadable: heads.unreadable,
            ..Self::default()
        };
        // The lines of each run that began in the segment.
        let mut open: HashMap<RunHash, Vec<RecordLocation>> = HashMap::new();
        for (location, head) in heads.heads {
            match head {
                LineHead::Accepted { run, .. } => open.entry(RunHash::from(&run)).or_default().push(location),
                LineHead::Record { run } => match open.get_mut(&run) {
                    Some(lines) => lines.push(location),
                    None => entries.others.push(location.offset),
                },
                LineHead::Finished { run, at } => match open.remove(&run) {
                    Some(lines) => entries.ended.push((run, EndedRun::new(lines[0], location, at))),
                    None => entries.others.push(location.offset),
                },
                LineHead::Ended { run, ended } => entries.ended.push((run, ended)),
            }
        }
        let unfinished = open.into_values().flatten().map(|location| location.offset);
        entries.others.extend(unfinished);
        entries.others.sort_unstable();
        entries
    }

    fn to_bytes(&self, len: u64, checksum: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + ENTRY_LEN * self.ended.len() + WORD * (self.others.len() + 1));
        let mut push = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
        let header = [MAGIC, len, checksum.into(), self.unreadable, self.ended.len() as u64];
        header.into_iter().for_each(&mut push);
        for (run, ended) in &self.ended {
            let places = [ended.first().offset, ended.last().offset, ended.at().as_millis()];
            run.words().into_iter().chain(places).for_each(&mut push);
        }
        self.others.iter().copied().for_each(&mut push);
        push(crc32fast::hash(&[]).into());
        let end = bytes.len() - WORD;
        let own = u64::from(crc32fast::hash(&bytes[..end]));
        bytes[end..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Parses an index; `None` if the bytes are no index, are damaged, or are the index of a
    /// segment with other bytes.
    fn parse(bytes: &[u8], number: u32, len: u64, checksum: u32) -> Option<Self> {
        let (content, own) = bytes.split_last_chunk()?;
        if u64::from_le_bytes(*own) != u64::from(crc32fast::hash(content)) {
            return None;
        }
        let (words, []) = content.as_chunks::<WORD>() else {
            return None;
        };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        if [words.next()?, words.next()?, words.next()?] != [MAGIC, len, checksum.into()] {
            return None;
        }
        let unreadable = words.next()?;
        let count = usize::try_from(words.next()?).ok()?;
        let location = |offset| RecordLocation {
            segment: number,
            offset,
        };
        let mut ended = Vec::with_capacity(count.min(content.len() / ENTRY_LEN));
        for _ in 0..count {
            let run = RunHash::of_words([words.next()?, words.next()?]);
            let first = location(words.next()?);
            let last = location(words.next()?);
            ended.push((run, EndedRun::new(first, last, Timestamp::from_millis(words.next()?))));
        }
        let others = words.collect();
        Some(Self {
            ended,
            others,
            unreadable,
        })
    }

    /// Returns the entries as heads in the order of their lines. The heads of the other runs are
    /// read from the segment.
    fn into_heads(self, folder: &DataFolder, number: u32) -> io::Result<SegmentHeads> {
        let ended = self.ended.into_iter();
        let mut heads: Vec<_> = ended
            .map(|(run, ended)| (ended.last(), LineHead::Ended { run, ended }))
            .collect();
        for offset in self.others {
            let location = RecordLocation {
                segment: number,
                offset,
            };
            heads.push((location, head::parse(&segment::read_line(folder, location)?)?));
        }
        heads.sort_unstable_by_key(|(location, _)| *location);
        Ok(SegmentHeads {
            heads,
            unreadable: self.unreadable,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rockbot_core::turn::{RunAccepted, RunBody, RunKey, RunRecord};
    use rockbot_core::{Digest, TurnId};
    use serde_json::value::RawValue;

    use super::super::index::RunIndex;
    use super::super::line::JournalLineRef;
    use super::*;

    const RUNS: u8 = 4;

    /// Appends a line about a run: its acceptance, a record, its end, or a torn one.
    fn push(lines: &mut Vec<u8>, run: u8, kind: u8) {
        let run = TurnId::from(format!("r{run}"));
        let at = Timestamp::from_millis(lines.len() as u64);
        let digest = Digest::of([run.as_str()]);
        let body = RunBody::from(RawValue::NULL.to_owned());
        let key = RunKey::new("me".into(), "s", "m");
        let line = match kind {
            0 => JournalLineRef::Accepted(&RunAccepted::new(run, key, digest, at, body)).write_to(lines),
            1 => {
                let record = &RunRecord::new(at, body);
                JournalLineRef::Record { run: &run, record }.write_to(lines)
            }
            2 => {
                let run = &run;
                let outcome = &body;
                JournalLineRef::Finished {
                    run,
                    digest,
                    at,
                    outcome,
                }
                .write_to(lines)
            }
            _ => {
                lines.extend_from_slice(b"{\"rec\n");
                Ok(())
            }
        };
        line.unwrap();
    }

    /// Describes what an index of runs knows after an earlier segment, which some runs began in, and
    /// these heads.
    fn known(heads: SegmentHeads) -> String {
        let mut index = RunIndex::default();
        let earlier = |offset| RecordLocation { segment: 1, offset };
        for run in 0..RUNS / 2 {
            let run = TurnId::from(format!("r{run}"));
            let digest = Digest::of(["earlier"]);
            index.apply(earlier(run.as_str().len() as u64), LineHead::Accepted { run, digest });
        }
        let unreadable = heads.unreadable;
        heads
            .heads
            .into_iter()
            .for_each(|(location, head)| index.apply(location, head));
        let runs = (0..RUNS).map(|run| TurnId::from(format!("r{run}")));
        let runs: Vec<_> = runs.map(|run| (index.lines(&run), index.status(&run))).collect();
        format!("{unreadable} {runs:?} {:?}", index.unfinished())
    }

    fn folder_with(lines: &[u8]) -> (tempfile::TempDir, DataFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(temporary.path()).unwrap();
        folder.replace("turns-00000002.jsonl", lines).unwrap();
        (temporary, folder)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_index_says_what_the_lines_say(kinds in prop::collection::vec((0..RUNS, 0..4_u8), 0..30)) {
            let mut lines = Vec::new();
            kinds.into_iter().for_each(|(run, kind)| push(&mut lines, run, kind));
            let (_temporary, folder) = folder_with(&lines);
            prop_assert!(read(&folder, 2).unwrap().is_none());
            write(&folder, 2).unwrap();
            let by_lines = SegmentHeads::read(&segment::open(&folder, 2).unwrap(), 2).unwrap();
            let by_index = read(&folder, 2).unwrap().expect("the index fits");
            prop_assert_eq!(known(by_index), known(by_lines));
        }
    }

    #[test]
    fn an_index_that_does_not_fit_is_ignored() {
        let mut lines = Vec::new();
        [0, 1, 2, 1].into_iter().for_each(|kind| push(&mut lines, 3, kind));
        let (_temporary, folder) = folder_with(&lines);
        write(&folder, 2).unwrap();
        let index = folder.read(&segment::index_name(2), MAX_LEN).unwrap().unwrap();
        for at in 0..index.len() {
            let mut damaged = index.clone();
            damaged[at] ^= 1;
            folder.replace(&segment::index_name(2), &damaged).unwrap();
            assert!(read(&folder, 2).unwrap().is_none(), "byte {at}");
            folder.replace(&segment::index_name(2), &index[..at]).unwrap();
            assert!(read(&folder, 2).unwrap().is_none(), "{at} bytes");
        }
        folder.replace(&segment::index_name(2), &index).unwrap();
        assert!(read(&folder, 2).unwrap().is_some());
        lines[20] ^= 1;
        folder.replace("turns-00000002.jsonl", &lines).unwrap();
        assert!(read(&folder, 2).unwrap().is_none(), "another segment");
    }
}
