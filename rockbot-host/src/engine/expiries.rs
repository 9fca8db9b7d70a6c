//! The expiry of the waits of parked turns, in one task for all of them.
//!
//! A parked turn may wait for days, and a host may have thousands of them. A task each would keep
//! several kilobytes for every turn; here a turn is one entry of a sorted set.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::support::loggable;
use rockbot_core::{Timestamp, TurnId};
use tokio::sync::Notify;

use super::TurnEngine;
use crate::turn::{Turn, TurnEvent};

/// The parked turns of a host, sorted by the ends of their waits.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    waits: Mutex<Waits>,
    /// Notified when a wait begins that ends before all others, and when no wait is left.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waits {
    ends: BTreeSet<(Timestamp, TurnId)>,
    /// `true` while a task watches the set: from its first entry until it is empty.
    is_watched: bool,
}

impl Expiries {
    /// Ends the wait of a turn that is no longer parked.
    pub(super) fn remove(&self, turn: &TurnId, until: Timestamp) {
        let mut waits = self.lock();
        waits.ends.remove(&(until, turn.clone()));
        if waits.ends.is_empty() {
            // Nothing is left to watch: the task ends.
            self.changed.notify_one();
        }
    }

    /// Adds the wait of a parked turn. Returns `true` if the caller must begin to watch the set.
    fn insert(&self, turn: &TurnId, until: Timestamp) -> bool {
        let mut waits = self.lock();
        waits.ends.insert((until, turn.clone()));
        let is_first = waits.ends.first().is_some_and(|(first, _)| *first == until);
        if is_first {
            self.changed.notify_one();
        }
        !std::mem::replace(&mut waits.is_watched, true)
    }

    /// Returns the end of the next wait, or ends the watch of an empty set.
    fn next_end(&self) -> Option<Timestamp> {
        let mut waits = self.lock();
        let next = waits.ends.first().map(|(until, _)| *until);
        waits.is_watched = next.is_some();
        next
    }

    /// Takes a turn whose wait is over.
    fn take_due(&self, now: Timestamp) -> Option<(Timestamp, TurnId)> {
        let mut waits = self.lock();
        if waits.ends.first().is_some_and(|(until, _)| *until <= now) {
            waits.ends.pop_first()
        } else {
            None
        }
    }

    /// Takes all turns, when the host stops.
    fn take_all(&self) -> BTreeSet<(Timestamp, TurnId)> {
        let mut waits = self.lock();
        waits.is_watched = false;
        std::mem::take(&mut waits.ends)
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        // No code that can panic runs under the lock.
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnEngine {
    /// Refuses the undecided calls of a parked turn at `until`.
    pub(super) fn expire_at(self: &Arc<Self>, turn: &TurnId, until: Timestamp) {
        if self.expiries.insert(turn, until) {
            let engine = self.clone();
            self.spawn(async move { engine.watch_expiries().await });
        }
    }

    /// Refuses calls whose time is over until no turn waits or the host stops.
    async fn watch_expiries(self: &Arc<Self>) {
        while let Some(next) = self.expiries.next_end() {
            tokio::select! {
                () = self.closing.cancelled() => return self.leave_parked(),
                () = self.expiries.changed.notified() => {}
                () = self.clock.sleep_until(next) => self.expire_due().await,
            }
        }
    }

    /// Leaves the parked turns to the next start of the host.
    fn leave_parked(&self) {
        for (_, turn) in self.expiries.take_all() {
            if let Some(live) = self.live.remove_parked(&turn) {
                self.leave(&live);
            }
        }
    }

    async fn expire_due(self: &Arc<Self>) {
        let now = self.clock.now();
        while let Some((until, id)) = self.expiries.take_due(now) {
            // The turn may have continued and parked again with a later expiry since.
            let is_expired = move |turn: &Turn| turn.parked_until().is_some_and(|waits| waits <= until);
            if let Err(error) = self.apply_to_parked(&id, TurnEvent::ApprovalExpired, is_expired).await {
                let error = loggable(&error.to_string()).to_string();
                tracing::error!(turn = %id, %error, "journal write failed; the expired approval is not recorded and the turn stays parked");
            }
        }
    }
}
