//! The log of one principal.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use rockbot_core::files::{DataFolder, FileError, LineFile, without_bom};
use rockbot_core::store::{LogBatch, LogEntry, LogOffset, StoreError};

use super::line_index::{LineIndex, TrimmedHeader, lines};
use crate::storage::blocking::failed;

/// The longest log that is read, whatever wrote it, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The longest list of readers, in bytes.
const MAX_READERS: u64 = 1 << 20;

/// Into how many parts a full log is marked.
const INDEX_MARKS: u64 = 1024;

/// A log that was read.
#[derive(Debug)]
pub(super) struct PrincipalLog {
    name: String,
    readers_name: String,
    /// `None` while there is none.
    file: Option<LineFile>,
    index: LineIndex,
    readers: BTreeMap<String, u64>,
    max_bytes: u64,
}

impl PrincipalLog {
    /// Reads the log in the folder `prefix`, which ends with a slash or is empty.
    pub(super) fn load(folder: &DataFolder, prefix: &str, max_bytes: u64) -> Result<Self, StoreError> {
        let (name, readers_name) = (format!("{prefix}turns.jsonl"), format!("{prefix}readers.json"));
        let bytes = read(folder, &name, MAX_BYTES)?.unwrap_or_default();
        let index = LineIndex::of(&bytes, max_bytes / INDEX_MARKS);
        let readers = read(folder, &readers_name, MAX_READERS)?;
        let readers = readers.map(|json| serde_json::from_slice(without_bom(&json)));
        let readers = match readers.transpose() {
            Ok(readers) => readers.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "the readers of the conversation log are damaged; they read all of it again");
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

    /// A reader behind the end has read another log: this one is new to it.
    fn forget_lost_readers(&mut self, folder: &DataFolder) -> Result<(), StoreError> {
        let (end, before) = (self.index.end(), self.readers.len());
        self.readers.retain(|_, position| *position <= end);
        match self.readers.len() == before {
            true => Ok(()),
            false => self.write_readers(folder),
        }
    }

    /// Whether nobody else changed the file.
    pub(super) fn is_current(&self, folder: &DataFolder) -> bool {
        let is_still_missing = || matches!(folder.find(&self.name), Ok(None));
        self.file.as_ref().map_or_else(is_still_missing, LineFile::is_current)
    }

    fn len(&self) -> u64 {
        self.file.as_ref().map_or(0, LineFile::len)
    }

    /// Whether `bytes` more can be appended before some must be forgotten.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.len() + bytes as u64 <= self.max_bytes
    }

    /// Forgets the older half, read or not.
    pub(super) fn drop_older_half(&mut self, folder: &DataFolder) -> Result<(), StoreError> {
        let from = self.len().saturating_sub(self.max_bytes / 2);
        let offset = self.index.line_from(from);
        tracing::warn!(
            turns = offset - self.index.start,
            max_bytes = self.max_bytes,
            "the conversation log is full: its older half is forgotten, also by those who have not read it"
        );
        self.trim(folder, offset)
    }

    /// Appends lines, each of which ends with its newline.
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
        Ok(LogBatch {
            entries,
            next: LogOffset(to),
        })
    }

    pub(super) fn commit(&mut self, folder: &DataFolder, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        let position = self.readers.get(reader).copied().unwrap_or_default();
        if offset.0 <= position || offset.0 > self.index.end() {
            return Ok(());
        }
        self.readers.insert(reader.to_owned(), offset.0);
        let written = self.write_readers(folder);
        if written.is_err() {
            self.readers.insert(reader.to_owned(), position);
        }
        written
    }

    fn write_readers(&self, folder: &DataFolder) -> Result<(), StoreError> {
        let failed = |error| failed("the readers of the conversation log cannot be written", error);
        let json = serde_json::to_vec_pretty(&self.readers).expect("names and numbers are JSON");
        folder.replace(&self.readers_name, &json).map_err(failed)
    }

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
        folder.replace(&self.name, &shortened).map_err(failed)?;
        self.index = LineIndex::of(&shortened, self.max_bytes / INDEX_MARKS);
        self.file = Some(folder.lines(&self.name).map_err(failed)?);
        Ok(())
    }

    /// The bytes from `from` on, to `to` or the end.
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

/// Reads a file; one that can never be read is set aside.
fn read(folder: &DataFolder, name: &str, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    match folder.read(name, limit) {
        Err(error) if error.is_damage() => {
            tracing::warn!(%error, "a file of the conversation log is damaged");
            quarantine(folder, name).map(|()| None)
        }
        read => read.map_err(|error: FileError| failed("the conversation log cannot be read", error)),
    }
}

fn quarantine(folder: &DataFolder, name: &str) -> Result<(), StoreError> {
    let aside = folder.set_aside(name);
    aside
        .map(drop)
        .map_err(|error| failed("a damaged file of the conversation log cannot be set aside", error))
}
