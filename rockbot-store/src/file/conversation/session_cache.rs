//! The LRU cache of sessions in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::Timestamp;

use super::layout::SessionKey;
use super::session::Session;

/// A cached session; `None` until it has been read, and while its last read failed.
pub(super) type Slot = Arc<Mutex<Option<Session>>>;

/// An LRU cache of sessions.
///
/// Every session has at most one slot, whose lock serializes the operations on it. A slot is
/// evicted only while no caller holds it; otherwise a second slot could be created for the same
/// files.
#[derive(Debug)]
pub(super) struct SessionCache {
    state: Mutex<CacheState>,
    limit: usize,
    idle_timeout: Duration,
}

#[derive(Debug, Default)]
struct CacheState {
    slots: HashMap<SessionKey, (Slot, Timestamp)>,
    /// Number of sessions that starts the next search for idle sessions.
    sweep_at: usize,
}

impl SessionCache {
    /// Creates a cache of about `limit` sessions; it holds more only while they are all in use.
    pub(super) fn new(limit: usize, idle_timeout: Duration) -> Self {
        Self {
            state: Mutex::default(),
            limit: limit.max(1),
            idle_timeout,
        }
    }

    /// Returns the slot of a session, which the caller fills if it is empty, and records its use.
    pub(super) fn slot(&self, key: SessionKey, now: Timestamp) -> Slot {
        let mut state = self.lock();
        if let Some((slot, used)) = state.slots.get_mut(&key) {
            *used = now;
            return slot.clone();
        }
        self.make_room(&mut state, now);
        state
            .slots
            .entry(key)
            .or_insert_with(|| (Slot::default(), now))
            .0
            .clone()
    }

    /// Adds a session that has been read.
    pub(super) fn insert(&self, key: SessionKey, session: Session, used: Timestamp) {
        self.lock()
            .slots
            .insert(key, (Arc::new(Mutex::new(Some(session))), used));
    }

    /// Evicts idle sessions and, if the cache is still full, the least recently used eighth.
    ///
    /// A pass visits every session, so it is done rarely: after the number of sessions has doubled,
    /// or an eighth of the capacity has been filled again. Its cost per added session is constant
    /// that way, and a use needs no linked list.
    fn make_room(&self, state: &mut CacheState, now: Timestamp) {
        if state.slots.len() < state.sweep_at.clamp(1, self.limit) {
            return;
        }
        // The cache holds one reference itself. The count can only grow under the lock, which `slot`
        // takes, too.
        let is_used = |slot: &Slot| Arc::strong_count(slot) > 1;
        state
            .slots
            .retain(|_, (slot, used)| is_used(slot) || now.since(*used) <= self.idle_timeout);
        if state.slots.len() >= self.limit {
            let mut times: Vec<_> = state.slots.values().map(|(_, used)| *used).collect();
            let mut excess = state.slots.len() - self.limit + self.limit.div_ceil(8);
            let (_, &mut last, _) = times.select_nth_unstable(excess - 1);
            state.slots.retain(|_, (slot, used)| {
                let evicts = excess > 0 && *used <= last && !is_used(slot);
                excess -= usize::from(evicts);
                !evicts
            });
        }
        state.sweep_at = (state.slots.len() * 2).max(64);
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
