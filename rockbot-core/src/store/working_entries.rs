//! The live entries of a working memory, with their expiry and quotas.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::StorePath;
use super::working_note::{WorkingEntry, WorkingMemoryError, WorkingNote};
use crate::Timestamp;

/// The quotas of a namespace of working memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkingLimits {
    /// Maximum number of entries. Default 1 000, enough for the chunks of a few large results and
    /// notes.
    pub entries: usize,
    /// Maximum size of all texts, in bytes. Default 64 MiB.
    pub bytes: usize,
}

impl Default for WorkingLimits {
    fn default() -> Self {
        Self {
            entries: 1_000,
            bytes: 64 * 1024 * 1024,
        }
    }
}

impl WorkingLimits {
    /// Sets the maximum number of entries. Default 1 000, enough for the chunks of a few large
    /// results and notes.
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Sets the maximum size of all texts, in bytes. Default 64 MiB.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

/// The entries of one principal, their order of expiry and the size of each namespace: for
/// implementers of working memories.
///
/// Looking up, inserting and removing an entry take logarithmic time in the number of entries.
#[derive(Debug, Clone, Default)]
pub struct WorkingEntries {
    entries: BTreeMap<StorePath, Arc<WorkingEntry>>,
    expiries: BTreeSet<(Timestamp, StorePath)>,
    sizes: HashMap<Box<str>, Size>,
    now: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    entries: usize,
    bytes: usize,
}

impl WorkingEntries {
    /// Evicts the expired entries and returns the current time of the memory: `now`, or the latest
    /// time seen if the clock was set back. Time stands still then, so that no expired entry
    /// returns and no new entry expires early.
    pub fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        while let Some((expiry, key)) = self.expiries.first()
            && *expiry <= self.now
        {
            let key = key.clone();
            self.remove(&key);
        }
        self.now
    }

    /// Checks that all of `notes` fit into their namespaces together.
    ///
    /// # Errors
    ///
    /// Returns an error if a namespace would exceed its quota of entries or bytes.
    pub fn check_room(&self, notes: &[WorkingNote], limits: WorkingLimits) -> Result<(), WorkingMemoryError> {
        let notes: BTreeMap<_, _> = notes.iter().map(|note| (&note.key, note.value.len())).collect();
        let mut sizes: BTreeMap<&str, Size> = BTreeMap::new();
        for (key, bytes) in notes {
            let namespace = key.namespace();
            let known = || self.sizes.get(namespace).copied().unwrap_or_default();
            let size = sizes.entry(namespace).or_insert_with(known);
            match self.entries.get(key) {
                Some(replaced) => size.bytes -= replaced.value.len(),
                None => size.entries += 1,
            }
            size.bytes += bytes;
        }
        for (namespace, size) in sizes {
            let namespace = || namespace.to_owned();
            if size.entries > limits.entries {
                return Err(WorkingMemoryError::Full {
                    namespace: namespace(),
                    limit: limits.entries,
                });
            }
            if size.bytes > limits.bytes {
                return Err(WorkingMemoryError::TooLarge {
                    namespace: namespace(),
                    limit: limits.bytes,
                });
            }
        }
        Ok(())
    }

    /// Inserts an entry, in place of the entry under its key.
    pub fn insert(&mut self, entry: Arc<WorkingEntry>) {
        self.remove(&entry.key);
        let size = self.sizes.entry(entry.key.namespace().into()).or_default();
        size.entries += 1;
        size.bytes += entry.value.len();
        self.expiries.insert((entry.expires_at, entry.key.clone()));
        self.entries.insert(entry.key.clone(), entry);
    }

    /// Removes the entry under `key` and returns it.
    pub fn remove(&mut self, key: &StorePath) -> Option<Arc<WorkingEntry>> {
        let entry = self.entries.remove(key)?;
        self.expiries.remove(&(entry.expires_at, entry.key.clone()));
        if let Some(size) = self.sizes.get_mut(key.namespace()) {
            size.entries -= 1;
            size.bytes -= entry.value.len();
            if size.entries == 0 {
                self.sizes.remove(key.namespace());
            }
        }
        Some(entry)
    }

    /// Returns the entry under `key`.
    pub fn get(&self, key: &StorePath) -> Option<&Arc<WorkingEntry>> {
        self.entries.get(key)
    }

    /// Returns the entries under `prefix` and below it, or all, in the order of their keys.
    pub fn list<'a>(&'a self, prefix: Option<&'a StorePath>) -> impl Iterator<Item = &'a Arc<WorkingEntry>> {
        let from = prefix.map_or(Bound::Unbounded, Bound::Included);
        let entries = self
            .entries
            .range::<StorePath, _>((from, Bound::Unbounded))
            .map(|(_, entry)| entry);
        let begins = move |entry: &&Arc<WorkingEntry>| {
            prefix.is_none_or(|prefix| entry.key.as_str().starts_with(prefix.as_str()))
        };
        let entries = entries.take_while(begins);
        entries.filter(move |entry| prefix.is_none_or(|prefix| entry.key.is_within(prefix)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::chat::Provenance;

    fn note(key: &str, len: usize, ttl: u64) -> WorkingNote {
        let key = StorePath::new(key).unwrap();
        WorkingNote::new(key, "x".repeat(len), Provenance::TOOL).with_ttl(Duration::from_millis(ttl))
    }

    #[test]
    fn a_clock_that_is_set_back_brings_nothing_back() {
        let mut entries = WorkingEntries::default();
        let now = entries.advance(Timestamp::from_millis(1_000_000));
        entries.insert(Arc::new(note("a/b/old", 1, 10).stored_at(now)));
        entries.advance(Timestamp::from_millis(1_000_010));
        let now = entries.advance(Timestamp::from_millis(5));
        entries.insert(Arc::new(note("a/b/new", 1, 10).stored_at(now)));
        entries.advance(Timestamp::from_millis(6));
        let keys: Vec<_> = entries.list(None).map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["a/b/new"]);
    }

    proptest! {
        #[test]
        fn sizes_are_those_of_the_entries(
            steps in prop::collection::vec(("[ab]/[ab](/[ab]{1,2})?", 0_usize..5, 1_u64..20, any::<bool>()), 1..60),
        ) {
            let mut entries = WorkingEntries::default();
            for (at, (key, len, ttl, is_removed)) in steps.into_iter().enumerate() {
                let now = entries.advance(Timestamp::from_millis(at as u64));
                if is_removed { drop(entries.remove(&StorePath::new(&key).unwrap())) } else { entries.insert(Arc::new(note(&key, len, ttl).stored_at(now))) }
                let mut sizes: HashMap<Box<str>, Size> = HashMap::new();
                for entry in entries.list(None) {
                    prop_assert!(entry.expires_at > now);
                    let size = sizes.entry(entry.key.namespace().into()).or_default();
                    *size = Size { entries: size.entries + 1, bytes: size.bytes + entry.value.len() };
                }
                prop_assert_eq!(&entries.sizes, &sizes);
                prop_assert_eq!(entries.expiries.len(), entries.entries.len());
            }
        }
    }
}
