//! Where the entries of one principal lie.

use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rockbot_core::embedding::Embedding;
use rockbot_core::search::{Ranked, VectorIndex};
use rockbot_core::{Digest, MemoryId};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long nobody looks for entries that came, changed or went without us.
const PAUSE: Duration = Duration::from_secs(60);

/// What the live entries of a principal say, and the vectors of those that have one.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Held by whoever looks all entries over.
    pub(super) scan_lock: Mutex<()>,
    state: RwLock<IndexState>,
}

#[derive(Debug, Default)]
struct IndexState {
    texts: BTreeMap<MemoryId, IndexedEntry>,
    vectors: VectorIndex<MemoryId>,
    /// When all entries were scanned over.
    scanned: Option<Instant>,
    /// How often something was noted.
    notes: u64,
    /// How many vectors stand in the file.
    filed: usize,
}

/// What an entry says.
#[derive(Debug)]
struct IndexedEntry {
    key: Digest,
    /// The model has no vector for it.
    is_refused: bool,
    /// When it was noted, in notes.
    noted: u64,
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, IndexState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, IndexState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has scanned all entries over.
    pub(super) fn is_new(&self) -> bool {
        self.read().scanned.is_none()
    }

    /// Whether somebody should.
    pub(super) fn is_stale(&self) -> bool {
        self.read().scanned.is_none_or(|scanned| scanned.elapsed() >= PAUSE)
    }

    /// Whether there is no vector to compare with.
    pub(super) fn is_empty(&self) -> bool {
        self.read().vectors.is_empty()
    }

    /// What stands for a moment: what is noted later is newer.
    pub(super) fn now(&self) -> u64 {
        self.read().notes
    }

    /// Takes in what entry `id` says; `None` when it is to be found no more. Returns whether it needs a vector.
    pub(super) fn note(&self, id: &MemoryId, key: Option<Digest>) -> bool {
        self.write().note(id, key)
    }

    /// Takes in all entries as they were at the time `then`, and vectors that are known.
    pub(super) fn rescan(&self, then: u64, entries: &BTreeMap<MemoryId, Digest>, filed: &StoredVectors) {
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
            if let Some(vector) = filed.vectors.get(key) {
                state.keep(id, *key, vector);
            }
        }
        state.filed += filed.lines;
        state.scanned = Some(Instant::now());
    }

    /// Up to `limit` entries that need a vector.
    pub(super) fn pending(&self, limit: usize) -> Vec<MemoryId> {
        let state = self.read();
        state.pending().take(limit).cloned().collect()
    }

    /// How many entries need a vector.
    pub(super) fn count_pending(&self) -> usize {
        self.read().pending().count()
    }

    /// The vector of what `id` says, unless it says something else by now.
    pub(super) fn keep(&self, id: &MemoryId, key: Digest, vector: &Embedding) {
        self.write().keep(id, key, vector);
    }

    /// There is no vector of what `id` says.
    pub(super) fn refuse(&self, id: &MemoryId, key: Digest) {
        if let Some(text) = self.write().texts.get_mut(id).filter(|text| text.key == key) {
            text.is_refused = true;
        }
    }

    /// The entries that are more similar than `least`, the nearest first.
    pub(super) fn search(&self, vector: &Embedding, least: f32) -> Vec<Ranked<MemoryId>> {
        self.read().vectors.search(vector, least)
    }

    /// Whether this is what `id` says.
    pub(super) fn says(&self, id: &MemoryId, key: Digest) -> bool {
        self.read().texts.get(id).is_some_and(|text| text.key == key)
    }

    /// Counts vectors that were written to the file. Returns whether it has become too long.
    pub(super) fn filed(&self, count: usize) -> bool {
        let mut state = self.write();
        state.filed += count;
        state.filed > 2 * state.texts.len() + 1000
    }

    /// All vectors, for a file that has nothing else then.
    pub(super) fn file_anew(&self) -> Vec<(Digest, Vec<f32>)> {
        let mut state = self.write();
        let vectors = state.vectors.iter();
        let filed = vectors.filter_map(|(id, values)| Some((state.texts.get(id)?.key, values.to_vec())));
        let filed: Vec<_> = filed.collect();
        state.filed = filed.len();
        filed
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

    fn pending(&self) -> impl Iterator<Item = &MemoryId> {
        let is_pending = |(id, text): &(&MemoryId, &IndexedEntry)| !text.is_refused && !self.vectors.contains(*id);
        self.texts.iter().filter(is_pending).map(|(id, _)| id)
    }
}

/// What stands in the file of a principal.
#[derive(Debug, Default)]
pub(super) struct StoredVectors {
    pub(super) vectors: HashMap<Digest, Embedding>,
    /// How many lines it has, those that cannot be read included.
    pub(super) lines: usize,
}
