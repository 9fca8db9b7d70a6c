//! The log of one principal: appends, reads, committed offsets, trimming.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use rockbot_core::files::{DataFolder, FileError, LineFile, without_bom};
use rockbot_core::store::{LogBatch, LogEntry, LogOffset, StoreError, StoreErrorKind};

use super::line_index::{LineIndex, TrimmedHeader, lines};
use crate::storage::blocking::failed;

/// Maximum size in bytes of a log that is read, whichever program wrote it.
const MAX_BYTES: u64 = 1 << 30;

/// Maximum size of `readers.json` in bytes.
const MAX_READERS: u64 = 1 << 20;

/// Name of the log in the folder of its principal.
pub(super) const NAME: &str = "turns.jsonl";

/// Name of the committed offsets of its readers.
pub(super) const READERS_NAME: &str = "readers.json";

/// Number of marks in the index of a full log.
const INDEX_MARKS: u64 = 1024;

/// The open log of one principal.
#[derive(Debug)]
pub(super) struct PrincipalLog {
    name: String,
    readers_name: String,
    /// `None` while the file does not exist.
    file: Option<LineFile>,
    index: LineIndex,
    readers: BTreeMap<String, u64>,
    max_bytes: u64,
}

impl PrincipalLog {
    /// Reads the log in the folder `prefix`, which ends with a slash or is empty. Damaged files are
    /// quarantined.
    pub(super) fn load(folder: &DataFolder, prefix: &str, max_bytes: u64) -> Result<Self, StoreError> {
        let name = format!("{prefix}{NAME}");
        let readers_name = format!("{prefix}{READERS_NAME}");
        let bytes = read(folder, &name, MAX_BYTES)?.unwrap_or_default();
        let index = LineIndex::of(&bytes, max_bytes / INDEX_MARKS);
        let readers = read(folder, &readers_name, MAX_READERS)?;
        let readers = readers.map(|json| serde_json::from_slice(without_bom(&json)));
        let readers = match readers.transpose() {
            Ok(readers) => readers.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "the committed offsets of the conversation log are damaged; all readers start again");
                quarantine(folder, &readers_name)?;
                BTreeMap::new()
            }
        };
        let file = folder
            .find(&name)
            .and_then(|found| found.map(|_| folder.lines(&name)).transpose());
        let file = file.map_err(|error| failed("the conversation log cannot be opened", error))?;
        let mut log = Self {
            name,
            readers_name,
            file,
            index,
            readers,
            max_bytes,
        };
        log.forget_lost_readers(folder)?;
        Ok(log)
    }

    /// Removes readers whose offset lies beyond the end: they have read another log, and the present
    /// log is new to them.
    fn forget_lost_readers(&mut self, folder: &DataFolder) -> Result<(), StoreError> {
        let end = self.index.end();
        let before = self.readers.len();
        self.readers.retain(|_, position| *position <= end);
        if self.readers.len() == before {
            Ok(())
        } else {
            self.write_readers(folder)
        }
    }

    /// Returns `true` if no other program replaced, removed or created the file.
    pub(super) fn is_current(&self, folder: &DataFolder) -> bool {
        let is_still_missing = || matches!(folder.find(&self.name), Ok(None));
        self.file.as_ref().map_or_else(is_still_missing, LineFile::is_current)
    }

    fn len(&self) -> u64 {
        self.file.as_ref().map_or(0, LineFile::len)
    }

    /// Returns `true` if `bytes` more fit without dropping the older half.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.len() + bytes as u64 <= self.max_bytes
    }

    /// Drops the older half, whether or not all readers have read it.
    pub(super) fn drop_older_half(&mut self, folder: &DataFolder) -> Result<(), StoreError> {
        let from = self.len().saturating_sub(self.max_bytes / 2);
        let offset = self.index.line_from(from);
        tracing::warn!(
            turns = offset - self.index.start,
            max_bytes = self.max_bytes,
            "the conversation log is full; its older half is dropped, also for readers that have not read it"
        );
        self.trim(folder, offset)
    }

    /// Appends lines in one write without a sync. Each line ends with a newline.
    pub(super) fn append(&mut self, folder: &DataFolder, bytes: &[u8]) -> Result<(), StoreError> {
        let failed = |error| failed("the conversation log cannot be written", error);
        let file = match self.file.take() {
            Some(file) => file,
            None => folder.lines(&self.name).map_err(failed)?,
        };
        let at = self.file.insert(file).append(bytes).map_err(failed)?;
        for (line, _) in lines(bytes) {
            self.index.push(at + line);
        }
        Ok(())
    }

    /// Reads up to `limit` entries from the committed offset of `reader`.
    pub(super) fn read(&self, folder: &DataFolder, reader: &str, limit: usize) -> Result<LogBatch, StoreError> {
        let committed = self.readers.get(reader).copied().unwrap_or_default();
        let from = committed.clamp(self.index.start, self.index.end());
        let to = from.saturating_add(limit as u64).min(self.index.end());
        let (first, byte) = self.index.before(from);
        let bytes = self.bytes(folder, byte, self.index.byte_after(to))?;
        let mut entries = Vec::new();
        let wanted = lines(&bytes).skip((from - first) as usize).take((to - from) as usize);
        for (_, line) in wanted {
            match serde_json::from_slice::<LogEntry>(line) {
                Ok(entry) => entries.push(entry),
                Err(error) => tracing::warn!(%error, "a line of the conversation log cannot be read and is skipped"),
            }
        }
        Ok(LogBatch::new(entries, LogOffset(to)))
    }

    /// Stores the offset of `reader`. Offsets only grow: a late commit of an earlier batch has no
    /// effect.
    pub(super) fn commit(&mut self, folder: &DataFolder, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        let position = self.readers.get(reader).copied().unwrap_or_default();
        if offset.0 <= position || offset.0 > self.index.end() {
            return Ok(());
        }
        self.readers.insert(reader.to_owned(), offset.0);
        let written = self.write_readers(folder);
        // Memory must not run ahead of the file, or the reader would skip entries until a restart and
        // not after it.
        let kind = written.as_ref().err().map(StoreError::kind);
        if kind.is_some_and(|kind| kind != StoreErrorKind::NotDurable) {
            self.readers.insert(reader.to_owned(), position);
        }
        written
    }

    fn write_readers(&self, folder: &DataFolder) -> Result<(), StoreError> {
        let failed = |error| failed("the readers of the conversation log cannot be written", error);
        let json = serde_json::to_vec_pretty(&self.readers).expect("names and numbers are JSON");
        folder.replace(&self.readers_name, &json).map_err(failed)
    }

    /// Drops the lines before `offset` by replacing the file.
    pub(super) fn trim(&mut self, folder: &DataFolder, offset: u64) -> Result<(), StoreError> {
        let offset = offset.min(self.index.end());
        if offset <= self.index.start {
            return Ok(());
        }
        let (first, byte) = self.index.before(offset);
        let bytes = self.bytes(folder, byte, None)?;
        let rest = lines(&bytes).nth((offset - first) as usize);
        let rest = rest.map_or(&[][..], |(at, _)| &bytes[at as usize..]);
        let mut shortened = serde_json::to_vec(&TrimmedHeader { start: offset }).expect("a number is JSON");
        shortened.push(b'\n');
        shortened.extend(rest);
        let failed = |error| failed("the conversation log cannot be shortened", error);
        // Atomic: a crash leaves the whole log or the trimmed one, whose first line keeps the offsets.
        let replaced = folder.replace(&self.name, &shortened);
        if matches!(replaced, Ok(()) | Err(FileError::NotDurable { .. })) {
            self.index = LineIndex::of(&shortened, self.max_bytes / INDEX_MARKS);
            self.file = Some(folder.lines(&self.name).map_err(failed)?);
        }
        replaced.map_err(failed)
    }

    /// Reads the bytes from `from` to `to`, or to the end.
    fn bytes(&self, folder: &DataFolder, from: u64, to: Option<u64>) -> Result<Vec<u8>, StoreError> {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            if let Some(mut file) = folder.file(&self.name)? {
                file.seek(SeekFrom::Start(from))?;
                let length = to.unwrap_or(self.len()).saturating_sub(from);
                file.take(length).read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        read().map_err(|error| failed("the conversation log cannot be read", error))
    }
}

/// Reads a file; a damaged file is quarantined and read as missing.
fn read(folder: &DataFolder, name: &str, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    match folder.read(name, limit) {
        Err(error) if error.is_damage() => {
            tracing::warn!(%error, "a file of the conversation log is damaged");
            quarantine(folder, name).map(|()| None)
        }
        read => read.map_err(|error: FileError| failed("the conversation log cannot be read", error)),
    }
}

/// Renames a damaged file to `….damaged`.
fn quarantine(folder: &DataFolder, name: &str) -> Result<(), StoreError> {
    let moved = folder.quarantine(name);
    moved
        .map(drop)
        .map_err(|error| failed("a damaged file of the conversation log cannot be quarantined", error))
}
