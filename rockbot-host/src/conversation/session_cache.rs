//! The sessions that are held in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::Timestamp;

use super::layout::SessionKey;
use super::session::Session;

/// A session, once it was read.
pub(super) type Slot = Arc<Mutex<Option<Session>>>;

/// Every session has one slot at most: it is only taken away while nobody else holds it.
#[derive(Debug)]
pub(super) struct SessionCache {
    state: Mutex<CacheState>,
    limit: usize,
    idle_timeout: Duration,
}

#[derive(Debug, Default)]
struct CacheState {
    slots: HashMap<SessionKey, (Slot, Timestamp)>,
    /// How many there may be before somebody looks who can go.
    sweep_at: usize,
}

impl SessionCache {
    /// Holds about `limit` sessions: more only while they are all in use.
    pub(super) fn new(limit: usize, idle_timeout: Duration) -> Self {
        Self {
            state: Mutex::default(),
            limit: limit.max(1),
            idle_timeout,
        }
    }

    /// The slot of a session, which may have to be read first.
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

    /// Takes in a session that was read.
    pub(super) fn insert(&self, key: SessionKey, session: Session, used: Timestamp) {
        self.lock()
            .slots
            .insert(key, (Arc::new(Mutex::new(Some(session))), used));
    }

    /// Lets go of idle sessions, and of those that were not used for the longest time, an eighth at once, so that
    /// looking for them costs little for each that comes.
    fn make_room(&self, state: &mut CacheState, now: Timestamp) {
        if state.slots.len() < state.sweep_at.clamp(1, self.limit) {
            return;
        }
        let is_used = |slot: &Slot| Arc::strong_count(slot) > 1;
        state
            .slots
            .retain(|_, (slot, used)| is_used(slot) || now.since(*used) <= self.idle_timeout);
        if state.slots.len() >= self.limit {
            let mut times: Vec<_> = state.slots.values().map(|(_, used)| *used).collect();
            let mut excess = state.slots.len() - self.limit + self.limit.div_ceil(8);
            let (_, &mut last, _) = times.select_nth_unstable(excess - 1);
            state.slots.retain(|_, (slot, used)| {
                let goes = excess > 0 && *used <= last && !is_used(slot);
                excess -= usize::from(goes);
                !goes
            });
        }
        state.sweep_at = (state.slots.len() * 2).max(64);
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
