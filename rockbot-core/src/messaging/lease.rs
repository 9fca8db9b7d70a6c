//! Leases of announcements: how long a program that announces something on a bus counts as there.
//!
//! A program announces its offer under a name, with a lease. It renews the lease by
//! [heartbeats](heartbeat_interval), which are small, and announces the offer again when it
//! changes or a reader asks. Before it stops, it withdraws the announcement; a program that is
//! killed is gone when its lease runs out. Several processes may have one name: the offer of the
//! process that announced a change last counts, as in a rolling update.
//!
//! [`LeaseTable`] is the reader's side: a state that a clock and messages change, without I/O. The
//! messages are the announcer's own.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Shortest lease: a shorter lease would end between two heartbeats of a busy process.
const MIN_LEASE: Duration = Duration::from_secs(1);

/// Longest lease: the offer of a process that was killed is gone after this time at most.
const MAX_LEASE: Duration = Duration::from_secs(5 * 60);

/// Number of heartbeats within a lease, so that a lost heartbeat ends nothing.
const HEARTBEATS: u32 = 3;

/// Returns the time between two heartbeats of a process with this lease: a third of the lease,
/// which counts as at least 1 s and at most 5 min.
pub fn heartbeat_interval(lease: Duration) -> Duration {
    lease.clamp(MIN_LEASE, MAX_LEASE) / HEARTBEATS
}

/// The lease that an announcement or a heartbeat states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease<'a> {
    /// The name that the program announces under.
    pub name: &'a str,
    /// The id of the running process among the processes of the name.
    pub instance: &'a str,
    /// Number of the announcement, which grows with every change of the process's offer.
    pub revision: u64,
    /// Validity in milliseconds, which counts as at least 1 s and at most 5 min.
    pub lease_ms: u64,
}

impl<'a> Lease<'a> {
    /// Creates the lease of a process.
    pub fn new(name: &'a str, instance: &'a str, revision: u64, lease_ms: u64) -> Self {
        Self {
            name,
            instance,
            revision,
            lease_ms,
        }
    }

    fn process(&self, now: Instant) -> LeasedProcess {
        LeasedProcess {
            revision: self.revision,
            expires: now + Duration::from_millis(self.lease_ms).clamp(MIN_LEASE, MAX_LEASE),
        }
    }
}

/// The programs that have announced themselves, with their leases and an offer for each name.
///
/// ```
/// use std::time::Duration;
///
/// use rockbot_core::messaging::lease::{Lease, LeaseTable, Withdrawal};
/// use tokio::time::Instant;
///
/// let mut table: LeaseTable<Vec<&str>> = LeaseTable::new(64, 64);
/// let now = Instant::now();
/// let lease = Lease::new("calculator", "process-1", 1, 15_000);
/// assert!(table.renew(lease, now), "unknown until it announces its offer");
/// if let Some(offer) = table.announce(lease, now)? {
///     *offer = vec!["add"];
/// }
/// assert!(!table.renew(lease, now + Duration::from_secs(10)));
/// let later = now + Duration::from_secs(25);
/// assert_eq!(table.expire(later), Some(("calculator".to_owned(), Withdrawal::Gone)));
/// # Ok::<(), rockbot_core::messaging::lease::TooMany>(())
/// ```
#[derive(Debug)]
pub struct LeaseTable<T> {
    names: BTreeMap<String, LeasedName<T>>,
    max_names: usize,
    max_processes: usize,
}

#[derive(Debug, Default)]
struct LeasedName<T> {
    processes: BTreeMap<String, LeasedProcess>,
    /// The process whose offer counts.
    offering: String,
    offer: T,
}

#[derive(Debug)]
struct LeasedProcess {
    revision: u64,
    expires: Instant,
}

/// The consequence of a process that is gone for the offer of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Withdrawal {
    /// The offer stays as it is.
    None,
    /// The offer was that of the process: the remaining processes are asked for theirs.
    Ask,
    /// The last process of the name is gone, and the offer with it.
    Gone,
}

/// The refusal of an announcement beyond the bounds of a [`LeaseTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooMany {
    /// There are too many names.
    Names,
    /// The name has too many processes.
    Processes,
}

impl TooMany {
    /// Reports whether announcing again may help: it may, once others are gone.
    pub fn retry_helps(&self) -> bool {
        true
    }
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Names => "too many programs announce themselves",
            Self::Processes => "the program has too many processes",
        })
    }
}

impl std::error::Error for TooMany {}

impl<T> LeasedName<T> {
    /// Returns `true` if the process whose offer counts is gone.
    fn is_orphaned(&self) -> bool {
        !self.processes.contains_key(&self.offering)
    }
}

impl<T> LeaseTable<T> {
    /// Creates an empty table of at most `max_names` names with `max_processes` processes each.
    pub fn new(max_names: usize, max_processes: usize) -> Self {
        Self {
            names: BTreeMap::new(),
            max_names,
            max_processes,
        }
    }

    /// Takes an announcement. If it counts, returns the offer of its name, which the caller
    /// replaces by the announced offer; a new name begins with the default.
    ///
    /// An announcement does not count if a later announcement of its process is known. Neither
    /// does a repeated announcement of a process that does not have the offer: of two processes
    /// that differ, the older process does not take the offer back with each question.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many names or processes.
    pub fn announce(&mut self, lease: Lease<'_>, now: Instant) -> Result<Option<&mut T>, TooMany>
    where
        T: Default,
    {
        if !self.names.contains_key(lease.name) && self.names.len() >= self.max_names {
            return Err(TooMany::Names);
        }
        let name = self.names.entry(lease.name.to_owned()).or_default();
        let before = name.processes.get(lease.instance).map(|process| process.revision);
        if before.is_none() && name.processes.len() >= self.max_processes {
            return Err(TooMany::Processes);
        }
        if before.is_some_and(|before| before > lease.revision) {
            return Ok(None);
        }
        name.processes.insert(lease.instance.to_owned(), lease.process(now));
        if before == Some(lease.revision) && name.offering != lease.instance && !name.is_orphaned() {
            return Ok(None);
        }
        lease.instance.clone_into(&mut name.offering);
        Ok(Some(&mut name.offer))
    }

    /// Takes a heartbeat, which renews the lease of a known process. Returns `true` if the
    /// announcement of the process is missing: it is asked for it.
    ///
    /// A process beyond the bounds is not asked, since its announcement would be refused.
    pub fn renew(&mut self, lease: Lease<'_>, now: Instant) -> bool {
        let Some(name) = self.names.get_mut(lease.name) else {
            return self.names.len() < self.max_names;
        };
        let has_room = name.processes.len() < self.max_processes;
        let Some(process) = name.processes.get_mut(lease.instance) else {
            return has_room;
        };
        if process.revision > lease.revision {
            return false;
        }
        process.expires = lease.process(now).expires;
        // The answer to the question about the remaining processes may be lost, too.
        process.revision < lease.revision || name.is_orphaned()
    }

    /// Removes a process, and returns the consequence.
    pub fn withdraw(&mut self, name: &str, instance: &str) -> Withdrawal {
        let Some(known) = self.names.get_mut(name) else {
            return Withdrawal::None;
        };
        let was_known = known.processes.remove(instance).is_some();
        if known.processes.is_empty() {
            self.names.remove(name);
            return Withdrawal::Gone;
        }
        // The remaining processes may offer something else.
        if was_known && known.offering == instance {
            Withdrawal::Ask
        } else {
            Withdrawal::None
        }
    }

    /// Removes a process whose lease has run out, and returns its name with the consequence;
    /// `None` if no lease has run out.
    pub fn expire(&mut self, now: Instant) -> Option<(String, Withdrawal)> {
        let mut processes = self.names.iter().flat_map(|(name, known)| {
            let processes = known.processes.iter();
            processes.map(move |(instance, process)| (name, instance, process.expires))
        });
        let (name, instance, _) = processes.find(|(_, _, expires)| *expires <= now)?;
        let (name, instance) = (name.clone(), instance.clone());
        let withdrawal = self.withdraw(&name, &instance);
        Some((name, withdrawal))
    }

    /// Returns the expiry of the next lease.
    pub fn next_expiry(&self) -> Option<Instant> {
        let processes = self.names.values().flat_map(|known| known.processes.values());
        processes.map(|process| process.expires).min()
    }

    /// Returns the names with their offers, sorted by name.
    pub fn offers(&self) -> impl Iterator<Item = (&str, &T)> {
        self.names.iter().map(|(name, known)| (&**name, &known.offer))
    }
}
