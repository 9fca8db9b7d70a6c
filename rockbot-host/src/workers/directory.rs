//! The workers that an agent knows, with their leases: a state that a clock and messages change,
//! without I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::wire::{ToolsAnnounced, ToolsWithdrawn, WorkerHeartbeat};

/// Maximum number of names of workers.
const MAX_WORKERS: usize = 64;

/// Maximum number of processes of one name.
const MAX_INSTANCES: usize = 256;

/// Maximum length of the descriptions, schemas and guides of all workers together, in bytes.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// Shortest lease: a shorter lease would end between two heartbeats of a busy process.
pub(super) const MIN_LEASE: Duration = Duration::from_secs(1);

/// Longest lease: tools of a worker that was killed are gone after this time at most.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(5 * 60);

/// The known workers by name.
#[derive(Debug, Default)]
pub(super) struct Directory {
    workers: BTreeMap<String, KnownWorker>,
}

/// The processes of one name, and the tools that they offer.
#[derive(Debug)]
struct KnownWorker {
    instances: BTreeMap<String, KnownInstance>,
    /// The announcement that counts. During a rolling update it is the announcement of the process
    /// that began last.
    offer: Arc<ToolsAnnounced>,
}

impl KnownWorker {
    /// Returns `true` if the process whose announcement counts is gone.
    fn is_orphaned(&self) -> bool {
        !self.instances.contains_key(&self.offer.instance)
    }
}

#[derive(Debug)]
struct KnownInstance {
    revision: u64,
    expires: Instant,
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
        let is_known = self.workers.contains_key(&announced.worker);
        if !is_known && self.workers.len() >= MAX_WORKERS {
            return Change::Refused("there are too many workers");
        }
        let others = self
            .workers
            .values()
            .filter(|worker| worker.offer.worker != announced.worker);
        if others.map(|worker| worker.offer.text_len()).sum::<usize>() + announced.text_len() > MAX_TEXT {
            return Change::Refused("the descriptions of all workers together are too long");
        }
        let offer = Arc::new(announced);
        let worker = self.workers.entry(offer.worker.clone()).or_insert_with(|| KnownWorker {
            instances: BTreeMap::new(),
            offer: offer.clone(),
        });
        let before = worker.instances.get(&offer.instance).map(|instance| instance.revision);
        if before.is_none() && worker.instances.len() >= MAX_INSTANCES {
            return Change::Refused("the worker has too many processes");
        }
        if before.is_some_and(|before| before > offer.revision) {
            return Change::None;
        }
        let instance = KnownInstance {
            revision: offer.revision,
            expires: expiry(offer.lease_ms, now),
        };
        worker.instances.insert(offer.instance.clone(), instance);
        // An announcement that is repeated, since an agent asked, changes nothing.
        if is_known && before == Some(offer.revision) && !worker.is_orphaned() {
            return Change::None;
        }
        let before = std::mem::replace(&mut worker.offer, offer.clone());
        if is_known && is_same_offer(&before, &offer) {
            Change::None
        } else {
            Change::Offered(offer)
        }
    }

    /// Takes a sign of life, which renews the lease of a known process. A process beyond the bounds
    /// is not asked, since its announcement would be refused.
    pub(super) fn heartbeat(&mut self, heartbeat: &WorkerHeartbeat, now: Instant) -> Change {
        let has_room = self.workers.len() < MAX_WORKERS;
        let Some(worker) = self.workers.get_mut(&heartbeat.worker) else {
            return if has_room { Change::Ask } else { Change::None };
        };
        let has_room = worker.instances.len() < MAX_INSTANCES;
        match worker.instances.get_mut(&heartbeat.instance) {
            Some(instance) if instance.revision == heartbeat.revision => {
                instance.expires = expiry(heartbeat.lease_ms, now);
                // The answer to the question about the remaining processes was lost.
                if worker.is_orphaned() {
                    Change::Ask
                } else {
                    Change::None
                }
            }
            Some(instance) if instance.revision > heartbeat.revision => Change::None,
            None if !has_room => Change::None,
            _ => Change::Ask,
        }
    }

    /// Takes a withdrawal.
    pub(super) fn withdrawn(&mut self, withdrawn: &ToolsWithdrawn) -> Change {
        let Some(worker) = self.workers.get_mut(&withdrawn.worker) else {
            return Change::None;
        };
        let was_known = worker.instances.remove(&withdrawn.instance).is_some();
        match worker.instances.is_empty() {
            true => {
                self.workers.remove(&withdrawn.worker);
                Change::Gone(withdrawn.worker.clone())
            }
            // The remaining processes may have other tools than the process whose announcement
            // counted.
            false if was_known && worker.offer.instance == withdrawn.instance => Change::Ask,
            false => Change::None,
        }
    }

    /// Removes a process whose lease has run out, and returns the consequence; `None` if no lease
    /// has run out.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Change> {
        let mut expired = self.workers.iter().flat_map(|(name, worker)| {
            let instances = worker.instances.iter();
            instances.filter_map(move |(id, instance)| (instance.expires <= now).then_some((name, id)))
        });
        let (worker, instance) = expired.next()?;
        let withdrawn = ToolsWithdrawn {
            worker: worker.clone(),
            instance: instance.clone(),
        };
        Some(self.withdrawn(&withdrawn))
    }

    /// Returns the expiry of the next lease.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let instances = self.workers.values().flat_map(|worker| worker.instances.values());
        instances.map(|instance| instance.expires).min()
    }
}

/// Returns `true` if two processes offer the same: the second announcement of a name then changes
/// nothing.
fn is_same_offer(one: &ToolsAnnounced, other: &ToolsAnnounced) -> bool {
    (&one.topic, &one.tools, &one.guides) == (&other.topic, &other.tools, &other.guides)
}

fn expiry(lease_ms: u64, now: Instant) -> Instant {
    now + Duration::from_millis(lease_ms).clamp(MIN_LEASE, MAX_LEASE)
}
