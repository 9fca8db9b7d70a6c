//! The workers that an agent knows, with their leases: a state that a clock and messages change,
//! without I/O.

use std::sync::Arc;

use rockbot_core::messaging::lease::{Lease, LeaseTable, TooMany, Withdrawal};
use tokio::time::Instant;

use super::wire::{ToolsAnnounced, ToolsWithdrawn, WorkerHeartbeat};

/// Maximum number of names of workers.
const MAX_WORKERS: usize = 64;

/// Maximum number of processes of one name.
const MAX_INSTANCES: usize = 256;

/// Maximum length of the descriptions, schemas and guides of all workers together, in bytes.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// The known workers by name, with the announcements that count.
#[derive(Debug)]
pub(super) struct Directory(LeaseTable<Option<Arc<ToolsAnnounced>>>);

impl Default for Directory {
    fn default() -> Self {
        Self(LeaseTable::new(MAX_WORKERS, MAX_INSTANCES))
    }
}

/// The consequence of a message for the registry.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// The tools stay as they are.
    None,
    /// A worker is known by a sign of life only, or its announcement has changed: it is asked for the
    /// announcement.
    Ask,
    /// The tools of the name are now the tools of the announcement.
    Offered(Arc<ToolsAnnounced>),
    /// The tools of the name are gone.
    Gone(String),
    /// The announcement is refused, for this reason.
    Refused(&'static str),
}

impl Directory {
    /// Takes an announcement.
    pub(super) fn announced(&mut self, announced: ToolsAnnounced, now: Instant) -> Change {
        let others = self.0.offers().filter(|(worker, _)| *worker != announced.worker);
        let offers = others.filter_map(|(_, offer)| offer.as_deref());
        if offers.map(ToolsAnnounced::text_len).sum::<usize>() + announced.text_len() > MAX_TEXT {
            return Change::Refused("the descriptions of all workers together are too long");
        }
        let offer = Arc::new(announced);
        let lease = Lease::new(&offer.worker, &offer.instance, offer.revision, offer.lease_ms);
        match self.0.announce(lease, now) {
            Err(TooMany::Names) => Change::Refused("there are too many workers"),
            Err(_) => Change::Refused("the worker has too many processes"),
            Ok(None) => Change::None,
            Ok(Some(known)) => match known.replace(offer.clone()) {
                Some(before) if is_same_offer(&before, &offer) => Change::None,
                _ => Change::Offered(offer),
            },
        }
    }

    /// Takes a sign of life, which renews the lease of a known process.
    pub(super) fn heartbeat(&mut self, heartbeat: &WorkerHeartbeat, now: Instant) -> Change {
        let WorkerHeartbeat {
            worker,
            instance,
            revision,
            lease_ms,
        } = heartbeat;
        if self.0.renew(Lease::new(worker, instance, *revision, *lease_ms), now) {
            Change::Ask
        } else {
            Change::None
        }
    }

    /// Takes a withdrawal.
    pub(super) fn withdrawn(&mut self, withdrawn: &ToolsWithdrawn) -> Change {
        let withdrawal = self.0.withdraw(&withdrawn.worker, &withdrawn.instance);
        change_of(&withdrawn.worker, withdrawal)
    }

    /// Removes a process whose lease has run out, and returns the consequence; `None` if no lease
    /// has run out.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Change> {
        let (worker, withdrawal) = self.0.expire(now)?;
        Some(change_of(&worker, withdrawal))
    }

    /// Returns the expiry of the next lease.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.0.next_expiry()
    }
}

fn change_of(worker: &str, withdrawal: Withdrawal) -> Change {
    match withdrawal {
        Withdrawal::Gone => Change::Gone(worker.to_owned()),
        Withdrawal::Ask => Change::Ask,
        _ => Change::None,
    }
}

/// Returns `true` if two processes offer the same: the second announcement of a name then changes
/// nothing.
fn is_same_offer(one: &ToolsAnnounced, other: &ToolsAnnounced) -> bool {
    (&one.topic, &one.tools, &one.guides) == (&other.topic, &other.tools, &other.guides)
}
