//! Loads the working memory of a principal from its documents and log.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rockbot_core::files::{DataFolder, decode, owner_of, without_bom};
use rockbot_core::store::{StoreError, WorkingEntry};
use rockbot_core::{Principal, Timestamp};
use serde_json::{Map, Value};

use super::format::{self, Change, MAX_BYTES, MEMBERS, group};
use super::state::WorkingState;
use crate::storage::blocking::failed;

/// Reads the documents, then replays the log. Entries that have expired at `now` are left out.
pub(super) fn load(
    folder: &DataFolder,
    principal: &Principal,
    now: Timestamp,
    damaged: &AtomicU64,
) -> Result<WorkingState, StoreError> {
    let log_name = format::log_name(principal).map_err(|error| failed("the principal has no working memory", error))?;
    let mut loader = Loader {
        folder,
        principal,
        now,
        damaged,
        state: WorkingState::new(log_name),
    };
    loader.documents()?;
    loader.log()?;
    loader.state.set_compact_at();
    Ok(loader.state)
}

/// The state of a load in progress.
struct Loader<'a> {
    folder: &'a DataFolder,
    principal: &'a Principal,
    now: Timestamp,
    damaged: &'a AtomicU64,
    state: WorkingState,
}

impl Loader<'_> {
    /// Reads all documents, also documents whose names this store does not write.
    fn documents(&mut self) -> Result<(), StoreError> {
        let found = self.folder.list_of(self.principal);
        let found = found.map_err(|error| failed("working memory cannot be listed", error))?;
        let stem = |name: &str| {
            let (_, name) = owner_of(name)?;
            name.strip_suffix(".json")
                .filter(|stem| !stem.contains('/'))
                .map(ToOwned::to_owned)
        };
        let documents = found
            .into_iter()
            .filter_map(|found| Some((stem(&found.name)?, found.name)));
        // Documents of this store last, so that they win: after a crash they are newer than the foreign
        // documents whose entries they took over.
        let mut documents: Vec<_> = documents.map(|(stem, name)| (decode(&stem).is_some(), name)).collect();
        documents.sort();
        documents.iter().try_for_each(|(_, name)| self.document(name))
    }

    /// Reads one document. A damaged document is quarantined; unreadable entries are skipped, and a
    /// copy preserves them.
    fn document(&mut self, name: &str) -> Result<(), StoreError> {
        let json = match self.folder.read(name, MAX_BYTES) {
            Ok(json) => json.unwrap_or_default(),
            Err(error) if error.is_damage() => return self.quarantine(name, &error),
            Err(error) => return Err(failed("working memory cannot be read", error)),
        };
        let values: Vec<Value> = match serde_json::from_slice(without_bom(&json)) {
            Ok(values) => values,
            Err(error) => return self.quarantine(name, &error),
        };
        let skipped: u64 = values
            .into_iter()
            .map(|value| u64::from(!self.entry(name, value)))
            .sum();
        if skipped > 0 {
            self.damaged.fetch_add(skipped, Ordering::Relaxed);
            let moved = self.folder.quarantine_copy(name);
            let moved = moved.map_err(|error| failed("damaged working memory cannot be quarantined", error))?;
            self.outdated(name);
            tracing::warn!(
                entries = skipped,
                file = name,
                copied_as = moved,
                "entries of working memory cannot be read"
            );
        }
        Ok(())
    }

    /// Inserts an entry of the document `name`. Returns `false` if it cannot be parsed.
    fn entry(&mut self, name: &str, value: Value) -> bool {
        let Some((entry, other)) = read(value) else {
            return false;
        };
        let group = group(&entry.key).to_owned();
        let is_own_document = format::document_name(self.principal, &group).is_ok_and(|own| own == name);
        let is_live = entry.expires_at > self.now;
        // An entry that is read from the document it belongs in is no change.
        let is_changed = !is_own_document || !is_live || self.state.changed.contains(&group);
        if !is_own_document {
            self.outdated(name);
        }
        if is_live {
            self.state.insert(Arc::new(entry), other);
        }
        if is_changed {
            self.state.changed.insert(group)
        } else {
            self.state.changed.remove(&group)
        };
        true
    }

    /// Marks a document to be rewritten, or to be removed because its entries will be in others.
    fn outdated(&mut self, name: &str) {
        let stem = owner_of(name).and_then(|(_, name)| name.strip_suffix(".json"));
        match stem.and_then(decode) {
            Some(group) => self.state.changed.insert(group),
            None => self.state.foreign.insert(name.to_owned()),
        };
    }

    /// Replays the log on top of the documents.
    fn log(&mut self) -> Result<(), StoreError> {
        let mut skipped = 0;
        let name = self.state.log_name.clone();
        let state = &mut self.state;
        let read = self
            .folder
            .read_lines(&name, MAX_BYTES, |line| match serde_json::from_slice::<Change>(line) {
                Ok(change) => state.apply(&change),
                Err(_) => skipped += 1,
            });
        match read {
            Ok(None) => return Ok(()),
            Ok(Some(overlong)) => skipped += overlong,
            Err(error) if error.is_damage() => return self.quarantine(&name, &error),
            Err(error) => return Err(failed("working memory cannot be read", error)),
        }
        self.damaged.fetch_add(skipped, Ordering::Relaxed);
        self.state.is_damaged = skipped > 0;
        let opened = self.state.open_log(self.folder);
        opened
            .map(drop)
            .map_err(|error| failed("working memory cannot be opened", error))
    }

    /// Renames a damaged file to `….damaged`.
    fn quarantine(&self, name: &str, error: &dyn Display) -> Result<(), StoreError> {
        let moved = self.folder.quarantine(name);
        let moved = moved.map_err(|error| failed("damaged working memory cannot be quarantined", error))?;
        self.damaged.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(file = name, quarantined_as = moved, %error, "a damaged file of working memory was quarantined");
        Ok(())
    }
}

/// Parses an entry and its unknown members.
fn read(value: Value) -> Option<(WorkingEntry, Map<String, Value>)> {
    let Value::Object(mut other) = value else { return None };
    let mut members = Map::new();
    for name in MEMBERS {
        // Other programs write `null` for an absent member.
        let member = other.remove(name).filter(|member| !member.is_null());
        members.extend(member.map(|member| (name.to_owned(), member)));
    }
    let entry = serde_json::from_value(Value::Object(members)).ok()?;
    Some((entry, other))
}
