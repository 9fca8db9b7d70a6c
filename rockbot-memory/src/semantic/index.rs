//! The vector index of one principal's entries.

use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rockbot_core::embedding::Embedding;
use rockbot_core::search::{Ranked, VectorIndex};
use rockbot_core::{Digest, MemoryId};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Minimum interval between scans for entries that were changed outside of this store.
const PAUSE: Duration = Duration::from_secs(60);

/// The digests of a principal's live entries, and the vectors of the entries that are embedded.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Serializes scans: held during one.
    pub(super) scan_lock: Mutex<()>,
    state: RwLock<IndexState>,
}

#[derive(Debug, Default)]
struct IndexState {
    texts: BTreeMap<MemoryId, IndexedEntry>,
    vectors: VectorIndex<MemoryId>,
    /// The time of the last scan.
    scanned: Option<Instant>,
    /// Number of changes so far; the logical clock of the index.
    notes: u64,
}

/// The index's knowledge of an entry.
#[derive(Debug)]
struct IndexedEntry {
    key: Digest,
    /// The model rejected the text.
    is_refused: bool,
    /// The logical time of the last change.
    noted: u64,
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, IndexState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, IndexState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a scan is due.
    pub(super) fn is_stale(&self) -> bool {
        self.read().scanned.is_none_or(|scanned| scanned.elapsed() >= PAUSE)
    }

    /// Returns `true` if there is no vector to compare with.
    pub(super) fn is_empty(&self) -> bool {
        self.read().vectors.is_empty()
    }

    /// Returns the logical time; changes noted later are newer.
    pub(super) fn now(&self) -> u64 {
        self.read().notes
    }

    /// Records the current text of entry `id`, or its removal for `None`. Returns `true` if it needs
    /// a vector.
    pub(super) fn note(&self, id: &MemoryId, key: Option<Digest>) -> bool {
        self.write().note(id, key)
    }

    /// Returns the texts among `entries` that have no vector here.
    pub(super) fn missing(&self, entries: &BTreeMap<MemoryId, Digest>) -> Vec<Digest> {
        let state = self.read();
        let lacks = |id, key| {
            let has_text = state.texts.get(id).is_some_and(|text| text.key == key);
            !(has_text && state.vectors.contains(id))
        };
        let missing = entries.iter().filter(|&(id, key)| lacks(id, *key));
        missing.map(|(_, key)| *key).collect()
    }

    /// Records all entries as scanned at the logical time `then`, and vectors from the cache. Entries
    /// that changed after `then` keep their newer state.
    pub(super) fn rescan(&self, then: u64, entries: &BTreeMap<MemoryId, Digest>, cached: &HashMap<Digest, Embedding>) {
        let mut state = self.write();
        let is_gone = |(id, text): (&MemoryId, &IndexedEntry)| {
            (text.noted <= then && !entries.contains_key(id)).then(|| id.clone())
        };
        let gone: Vec<_> = state.texts.iter().filter_map(is_gone).collect();
        for id in &gone {
            state.note(id, None);
        }
        for (id, key) in entries {
            if state.texts.get(id).is_none_or(|text| text.noted <= then) {
                state.note(id, Some(*key));
            }
            if let Some(vector) = cached.get(key) {
                state.keep_cached(id, *key, vector);
            }
        }
        state.scanned = Some(Instant::now());
    }

    /// Returns up to `limit` entries that need a vector.
    pub(super) fn pending(&self, limit: usize) -> Vec<MemoryId> {
        let state = self.read();
        state.pending().take(limit).cloned().collect()
    }

    /// Returns the number of entries that need a vector.
    pub(super) fn count_pending(&self) -> usize {
        self.read().pending().count()
    }

    /// Stores the vector of entry `id`, unless its text has changed meanwhile.
    pub(super) fn keep(&self, id: &MemoryId, key: Digest, vector: &Embedding) {
        self.write().keep(id, key, vector);
    }

    /// Stores the vector of entry `id` from the cache, unless the model has other dimensions now.
    /// Returns `true` if it is stored.
    pub(super) fn keep_cached(&self, id: &MemoryId, key: Digest, vector: &Embedding) -> bool {
        self.write().keep_cached(id, key, vector)
    }

    /// Marks the text of entry `id` as rejected by the model.
    pub(super) fn refuse(&self, id: &MemoryId, key: Digest) {
        if let Some(text) = self.write().texts.get_mut(id).filter(|text| text.key == key) {
            text.is_refused = true;
        }
    }

    /// Returns the entries with a similarity above `least`, the nearest first.
    pub(super) fn search(&self, vector: &Embedding, least: f32) -> Vec<Ranked<MemoryId>> {
        self.read().vectors.search(vector, least)
    }

    /// Returns the vector of the text with this digest, if an entry has the text and its vector.
    pub(super) fn vector(&self, key: Digest) -> Option<Embedding> {
        let state = self.read();
        let of_text = state.texts.iter().filter(|(_, text)| text.key == key);
        let mut ids = of_text.map(|(id, _)| id).filter(|id| state.vectors.contains(*id));
        let wanted = ids.next()?;
        let (_, values) = state.vectors.iter().find(|(id, _)| *id == wanted)?;
        Embedding::new(values.to_vec()).ok()
    }

    /// Returns `true` if `key` is the digest of the current text of `id`.
    pub(super) fn says(&self, id: &MemoryId, key: Digest) -> bool {
        self.read().texts.get(id).is_some_and(|text| text.key == key)
    }

    /// Returns the number of entries with a text.
    pub(super) fn count(&self) -> usize {
        self.read().texts.len()
    }
}

impl IndexState {
    fn note(&mut self, id: &MemoryId, key: Option<Digest>) -> bool {
        self.notes += 1;
        let Some(key) = key else {
            self.texts.remove(id);
            self.vectors.remove(id);
            return false;
        };
        let noted = self.notes;
        match self.texts.get_mut(id).filter(|text| text.key == key) {
            Some(text) => text.noted = noted,
            None => {
                let is_refused = false;
                self.texts.insert(id.clone(), IndexedEntry { key, is_refused, noted });
                self.vectors.remove(id);
            }
        }
        !self.vectors.contains(id)
    }

    fn keep(&mut self, id: &MemoryId, key: Digest, vector: &Embedding) {
        if self.texts.get(id).is_some_and(|text| text.key == key) {
            self.vectors.insert(id.clone(), vector);
        }
    }

    fn keep_cached(&mut self, id: &MemoryId, key: Digest, vector: &Embedding) -> bool {
        let known = self.vectors.iter().next();
        // The index has vectors of one dimension, and drops the others for a new one.
        if known.is_some_and(|(_, known)| known.len() != vector.values().len()) {
            return false;
        }
        self.keep(id, key, vector);
        self.vectors.contains(id)
    }

    fn pending(&self) -> impl Iterator<Item = &MemoryId> {
        let is_pending = |(id, text): &(&MemoryId, &IndexedEntry)| !text.is_refused && !self.vectors.contains(*id);
        self.texts.iter().filter(is_pending).map(|(id, _)| id)
    }
}
