//! The working memory of one principal, as it is in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockbot_core::files::{DataFolder, FileError, LineFile};
use rockbot_core::store::{StoreError, StorePath, WorkingEntries, WorkingEntry};
use serde_json::{Map, Value};

use super::format::{Change, group};
use crate::storage::blocking::{failed, invalid};

/// A log is folded when it has this many bytes, and more than twice those of all texts.
const COMPACT_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct WorkingState {
    pub(super) entries: WorkingEntries,
    /// Members of entries that we do not know. They are kept, and decide nothing.
    pub(super) others: BTreeMap<StorePath, Map<String, Value>>,
    pub(super) log: Option<LineFile>,
    pub(super) log_name: String,
    /// Groups whose document is not up to date.
    pub(super) changed: BTreeSet<String>,
    /// Documents whose entries stand in those of other names, too.
    pub(super) foreign: BTreeSet<String>,
    /// Whether the log has lines that cannot be read.
    pub(super) is_damaged: bool,
    /// How long the log may become.
    pub(super) compact_at: u64,
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

    /// Writes a change, and then makes it.
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

    pub(super) fn insert(&mut self, entry: Arc<WorkingEntry>, other: Map<String, Value>) {
        self.changed.insert(group(&entry.key).to_owned());
        match other.is_empty() {
            true => drop(self.others.remove(&entry.key)),
            false => drop(self.others.insert(entry.key.clone(), other)),
        }
        self.entries.insert(entry);
    }

    pub(super) fn open_log(&mut self, folder: &DataFolder) -> Result<&mut LineFile, FileError> {
        let log = match self.log.take().filter(LineFile::is_current) {
            Some(log) => log,
            None => folder.lines(&self.log_name)?,
        };
        Ok(self.log.insert(log))
    }

    pub(super) fn log_len(&self) -> u64 {
        self.log.as_ref().map_or(0, LineFile::len)
    }

    /// Whether it is time to fold; then the caller does.
    pub(super) fn begin_compaction(&mut self) -> bool {
        let begins = !self.is_compacting && self.log_len() >= self.compact_at;
        self.is_compacting |= begins;
        begins
    }

    /// How long the log may become from here.
    pub(super) fn set_compact_at(&mut self) {
        let texts: u64 = self.entries.list(None).map(|entry| entry.value.len() as u64).sum();
        self.compact_at = self.log_len() + COMPACT_BYTES + 2 * texts;
    }
}
