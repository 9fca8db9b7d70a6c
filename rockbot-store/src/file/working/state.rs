//! The working memory of one principal: its entries, its open log, and the state of compaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockbot_core::files::{DataFolder, FileError, LineFile};
use rockbot_core::store::{StoreError, StorePath, WorkingEntries, WorkingEntry};
use serde_json::{Map, Value};

use super::format::{Change, group};
use crate::storage::blocking::{failed, invalid};

/// Minimum growth of the log in bytes before it is compacted; twice the size of all texts is
/// added, so that compaction costs a constant factor of the written bytes.
const COMPACT_BYTES: u64 = 4 << 20;

/// The entries of one principal and the write-ahead log behind them.
#[derive(Debug)]
pub(super) struct WorkingState {
    pub(super) entries: WorkingEntries,
    /// Unknown members of entries. They are written back unchanged, and have no effect.
    pub(super) others: BTreeMap<StorePath, Map<String, Value>>,
    pub(super) log: Option<LineFile>,
    pub(super) log_name: String,
    /// Groups whose document is outdated.
    pub(super) changed: BTreeSet<String>,
    /// Documents with names that this store does not write; their entries move to the documents of
    /// their groups.
    pub(super) foreign: BTreeSet<String>,
    /// `true` if the log has lines that cannot be parsed.
    pub(super) is_damaged: bool,
    /// Length of the log in bytes at which it is compacted.
    pub(super) compact_at: u64,
    /// `true` while a compaction runs.
    pub(super) is_compacting: bool,
}

impl WorkingState {
    pub(super) fn new(log_name: String) -> Self {
        Self {
            entries: WorkingEntries::default(),
            others: BTreeMap::new(),
            log: None,
            log_name,
            changed: BTreeSet::new(),
            foreign: BTreeSet::new(),
            is_damaged: false,
            compact_at: COMPACT_BYTES,
            is_compacting: false,
        }
    }

    /// Appends a change to the log, then applies it: a change that could not be written is not visible.
    pub(super) fn write(&mut self, folder: &DataFolder, change: &Change) -> Result<(), StoreError> {
        let mut line = Vec::with_capacity(change.expected_size());
        serde_json::to_writer(&mut line, change)
            .map_err(|error| invalid("working memory cannot be written as JSON", error))?;
        line.push(b'\n');
        let written = self.open_log(folder).and_then(|log| log.append(&line));
        written.map_err(|error| failed("working memory cannot be written", error))?;
        self.apply(change);
        Ok(())
    }

    /// Applies a change to the entries.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(entries) => entries.iter().for_each(|entry| self.insert(entry.clone(), Map::new())),
            Change::Deleted(key) => {
                self.entries.remove(key);
                self.others.remove(key);
                self.changed.insert(group(key).to_owned());
            }
        }
    }

    /// Inserts an entry with its unknown members, and marks its group as changed.
    pub(super) fn insert(&mut self, entry: Arc<WorkingEntry>, other: Map<String, Value>) {
        self.changed.insert(group(&entry.key).to_owned());
        if other.is_empty() {
            drop(self.others.remove(&entry.key))
        } else {
            drop(self.others.insert(entry.key.clone(), other))
        }
        self.entries.insert(entry);
    }

    /// Opens the log, unless it is open and still the file of that name.
    pub(super) fn open_log(&mut self, folder: &DataFolder) -> Result<&mut LineFile, FileError> {
        let log = match self.log.take().filter(LineFile::is_current) {
            Some(log) => log,
            None => folder.lines(&self.log_name)?,
        };
        Ok(self.log.insert(log))
    }

    /// Returns the length of the log in bytes.
    pub(super) fn log_len(&self) -> u64 {
        self.log.as_ref().map_or(0, LineFile::len)
    }

    /// Returns `true` if the log is to be compacted; the caller must then do so.
    pub(super) fn begin_compaction(&mut self) -> bool {
        let begins = !self.is_compacting && self.log_len() >= self.compact_at;
        self.is_compacting |= begins;
        begins
    }

    /// Sets the length at which the log is compacted next.
    pub(super) fn set_compact_at(&mut self) {
        let texts: u64 = self.entries.list(None).map(|entry| entry.value.len() as u64).sum();
        self.compact_at = self.log_len() + COMPACT_BYTES + 2 * texts;
    }
}
