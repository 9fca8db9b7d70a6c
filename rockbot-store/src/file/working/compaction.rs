//! Compaction: changed groups are written as documents, and the entries that they contain are cut
//! from the log.
//!
//! Puts do not wait for the disk meanwhile: the state is locked only to take a snapshot and to
//! cut the log. Operations that are appended in between lie behind the snapshot's offset and stay
//! in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::Principal;
use rockbot_core::files::DataFolder;
use rockbot_core::store::{StoreError, StorePath, WorkingEntry};
use serde_json::{Map, Value};

use super::format::{self, StoredEntry, group};
use super::state::WorkingState;
use crate::storage::blocking::{failed, invalid};

/// The groups to be written, as of one moment.
struct Snapshot {
    groups: BTreeMap<String, Vec<Arc<WorkingEntry>>>,
    others: BTreeMap<StorePath, Map<String, Value>>,
    foreign: BTreeSet<String>,
    /// Length of the log that the snapshot covers, in bytes.
    offset: u64,
}

/// Compacts the log of `principal`. The caller has set `is_compacting`, so that no two
/// compactions run at once.
pub(super) fn compact(
    folder: &DataFolder,
    principal: &Principal,
    slot: &Mutex<Option<WorkingState>>,
) -> Result<(), StoreError> {
    let Some(snapshot) = lock(slot).as_mut().map(Snapshot::take) else {
        return Ok(());
    };
    let written = snapshot.write(folder, principal);
    let mut slot = lock(slot);
    let Some(state) = slot.as_mut() else { return written };
    let finished = match &written {
        Ok(()) => snapshot.finish(folder, state),
        Err(_) => Ok(()),
    };
    if written.is_err() || finished.is_err() {
        // The log still has everything; the groups stay marked for the next compaction.
        state.changed.extend(snapshot.groups.into_keys());
        state.foreign.extend(snapshot.foreign);
    }
    state.is_compacting = false;
    state.set_compact_at();
    written.and(finished)
}

fn lock(slot: &Mutex<Option<WorkingState>>) -> MutexGuard<'_, Option<WorkingState>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Snapshot {
    /// Takes the changed groups out of `state`.
    fn take(state: &mut WorkingState) -> Self {
        let changed = std::mem::take(&mut state.changed);
        let mut groups: BTreeMap<_, Vec<_>> = changed.into_iter().map(|group| (group, Vec::new())).collect();
        for entry in state.entries.list(None) {
            if let Some(entries) = groups.get_mut(group(&entry.key)) {
                entries.push(entry.clone());
            }
        }
        // Expiry removes entries, but not their unknown members.
        state.others.retain(|key, _| state.entries.get(key).is_some());
        Self {
            groups,
            others: state.others.clone(),
            foreign: std::mem::take(&mut state.foreign),
            offset: state.log_len(),
        }
    }

    /// Writes the documents, synced one by one. A crash in between is harmless: the log is still
    /// complete.
    fn write(&self, folder: &DataFolder, principal: &Principal) -> Result<(), StoreError> {
        let mut written = BTreeSet::new();
        for (group, entries) in &self.groups {
            let name = format::document_name(principal, group).map_err(|error| failed("a group has no file", error))?;
            let failed = |error| failed("working memory cannot be written", error);
            if entries.is_empty() {
                folder.remove(&name).map_err(failed)?;
            } else {
                folder.replace(&name, &self.json(entries)?).map_err(failed)?;
            }
            written.insert(name);
        }
        for name in self.foreign.difference(&written) {
            folder
                .remove(name)
                .map_err(|error| failed("working memory cannot be removed", error))?;
        }
        Ok(())
    }

    /// Serializes the entries of a group.
    fn json(&self, entries: &[Arc<WorkingEntry>]) -> Result<Vec<u8>, StoreError> {
        let written = |entry: &'_ Arc<WorkingEntry>| self.others.get(&entry.key).cloned();
        let others: Vec<_> = entries.iter().map(written).collect();
        let written = entries.iter().zip(&others);
        let written: Vec<_> = written
            .map(|(entry, other)| StoredEntry {
                entry,
                other: other.as_ref(),
            })
            .collect();
        serde_json::to_vec_pretty(&written).map_err(|error| invalid("working memory cannot be written as JSON", error))
    }

    /// Cuts the log by the part that the documents contain.
    fn finish(&self, folder: &DataFolder, state: &mut WorkingState) -> Result<(), StoreError> {
        let failed = |error| failed("the log of working memory cannot be shortened", error);
        // Damaged lines would be cut off with the rest: a copy preserves them for a person to look at.
        if std::mem::take(&mut state.is_damaged) {
            folder.quarantine_copy(&state.log_name).map_err(failed)?;
        }
        let Some(log) = state
            .log
            .as_mut()
            .filter(|log| log.is_current() && log.len() >= self.offset)
        else {
            return Ok(());
        };
        // Not synced: after power loss the whole log may be back, and replaying it is idempotent.
        log.keep_from(self.offset, false).map_err(failed)?;
        if log.is_empty() {
            state.log = None;
            folder.remove(&state.log_name).map_err(failed)?;
        }
        Ok(())
    }
}
