//! Indexes of chunks, kept between searches.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::index::ChunkIndex;

/// An LRU cache of the indexes of chunks, bounded by their size in memory.
///
/// Chunks are told apart by their text, so an index is never older than its chunk, whichever
/// store returns it. If searches run at once, one search builds an index, and the others wait for
/// it.
#[derive(Debug)]
pub(in crate::large_result) struct IndexCache {
    state: Mutex<State>,
    /// Maximum size of all indexes, in bytes.
    limit: usize,
    texts: RandomState,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<u64, Slot>,
    /// Size of all indexes that are built, in bytes.
    size: usize,
    /// Number of uses so far.
    uses: u64,
}

#[derive(Debug, Default)]
struct Slot {
    index: Arc<OnceLock<Arc<ChunkIndex>>>,
    /// Size of the index, in bytes; 0 until it is built.
    size: usize,
    /// Number of its last use.
    used: u64,
}

impl IndexCache {
    /// Creates a cache of at most `limit` bytes.
    pub(in crate::large_result) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            limit,
            texts: RandomState::new(),
        }
    }

    /// Returns the index of a chunk of `length` bytes, which `text` goes on behind: the kept index,
    /// or a new index.
    pub(super) fn index_of(&self, text: &str, length: usize) -> Arc<ChunkIndex> {
        let key = self.texts.hash_one((text, length));
        let cell = self.lock().used(key);
        let mut is_new = false;
        let index = cell.get_or_init(|| {
            is_new = true;
            Arc::new(ChunkIndex::of(text, length))
        });
        if is_new {
            self.lock().grow(key, index.size(), self.limit);
        }
        index.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the place of an index, and records its use.
    fn used(&mut self, key: u64) -> Arc<OnceLock<Arc<ChunkIndex>>> {
        self.uses += 1;
        let slot = self.slots.entry(key).or_default();
        slot.used = self.uses;
        slot.index.clone()
    }

    /// Records the size of a new index, and evicts the least recently used indexes until all fit in
    /// `limit`.
    fn grow(&mut self, key: u64, size: usize, limit: usize) {
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.size = size;
            self.size += size;
        }
        while self.size > limit {
            let built = self.slots.iter().filter(|(_, slot)| slot.size > 0);
            let Some((&oldest, _)) = built.min_by_key(|(_, slot)| slot.used) else {
                break;
            };
            let evicted = self.slots.remove(&oldest);
            self.size -= evicted.map_or(0, |slot| slot.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> String {
        format!("Chunk {number} speaks of the usual things.\n").repeat(20)
    }

    #[test]
    fn an_index_is_kept_until_others_need_its_room() {
        let size = ChunkIndex::of(&text(0), text(0).len()).size();
        let cache = IndexCache::new(2 * size + size / 2);
        let index_of = |number| cache.index_of(&text(number), text(number).len());
        let first = index_of(0);
        let second = index_of(1);
        assert!(Arc::ptr_eq(&first, &index_of(0)));
        // The second was used before the first, and gives way to the third.
        index_of(2);
        assert!(Arc::ptr_eq(&first, &index_of(0)));
        assert!(!Arc::ptr_eq(&second, &index_of(1)));
        assert!(cache.lock().size <= cache.limit);
    }

    #[test]
    fn an_index_larger_than_the_cache_is_not_kept() {
        let cache = IndexCache::new(10);
        let index = cache.index_of(&text(0), text(0).len());
        assert_eq!(*index, ChunkIndex::of(&text(0), text(0).len()));
        let state = cache.lock();
        assert_eq!((state.size, state.slots.len()), (0, 0));
    }

    #[test]
    fn a_text_that_goes_on_otherwise_has_an_index_of_its_own() {
        let cache = IndexCache::new(1_000_000);
        let one = cache.index_of("One is here", 6);
        let other = cache.index_of("One is gone", 6);
        assert_ne!(*one, *other);
    }
}
