//! The registry of the live turns of a host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::support::DigestMap;

use super::{LiveTurn, TurnState};

/// The live turns of a host by id: turns that work or are queued here, and turns that are parked
/// here.
///
/// A turn is in the registry from its admission until its end is in the journal, so a redelivered
/// message finds the turn that is under way instead of starting a second turn.
#[derive(Debug, Default)]
pub(crate) struct LiveTurns(Mutex<DigestMap<TurnId, Arc<LiveTurn>>>);

impl LiveTurns {
    /// Adds a turn; a turn of the same id is replaced.
    pub(crate) fn insert(&self, turn: &Arc<LiveTurn>) {
        self.lock().insert(turn.id().clone(), turn.clone());
    }

    /// Removes a turn, if it is present.
    pub(crate) fn remove(&self, id: &TurnId) {
        self.lock().remove(id);
    }

    /// Returns the turn with this id, if it is live here.
    pub(crate) fn find(&self, id: &TurnId) -> Option<Arc<LiveTurn>> {
        self.lock().get(id).cloned()
    }

    /// Returns the number of live turns.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns all live turns. The lock is released before the caller looks at them, so acting on a
    /// turn may register or remove others.
    pub(crate) fn all(&self) -> Vec<Arc<LiveTurn>> {
        self.lock().values().cloned().collect()
    }

    /// Returns `true` if any turn works or waits for its session.
    pub(crate) fn any_working(&self) -> bool {
        let works = |turn: &Arc<LiveTurn>| matches!(turn.state(), TurnState::Working);
        self.lock().values().any(works)
    }

    fn lock(&self) -> MutexGuard<'_, DigestMap<TurnId, Arc<LiveTurn>>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
