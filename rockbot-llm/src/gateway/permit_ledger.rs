//! The document in which processes note the permits that they hold: [`PermitLedger`].

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Time without a change after which a process counts as dead.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// The permits of all processes. A process that waits gets the next permit before those that began to
/// wait later.
///
/// Processes need no common clock: each change has a number, and a process is dead when another one
/// has seen the same number for too long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PermitLedger {
    changes: u64,
    processes: BTreeMap<String, Entry>,
}

/// The permits of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Number of permits that the process holds.
    held: usize,
    /// The last change by the process.
    changed: u64,
    /// The change at which the process began to wait for a permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits_since: Option<u64>,
}

/// The changes of other processes that a process has seen, and when.
pub(super) type Seen = HashMap<String, (u64, Instant)>;

impl PermitLedger {
    /// Removes the processes that died.
    pub(super) fn bury(&mut self, seen: &mut Seen, now: Instant) {
        seen.retain(|process, _| self.processes.contains_key(process));
        self.processes.retain(|process, entry| {
            let (changed, since) = seen.entry(process.clone()).or_insert((entry.changed, now));
            if *changed != entry.changed {
                (*changed, *since) = (entry.changed, now);
            }
            now.duration_since(*since) < SILENCE
        });
    }

    /// Notes that `process` holds `held` permits and that `waiting` calls of it wait, and gives it
    /// more of `most` permits: in its turn one, and all that are free if no other process waits.
    /// Returns the number that it got.
    pub(super) fn note(&mut self, process: &str, held: usize, waiting: usize, most: usize) -> usize {
        self.changes += 1;
        let changed = self.changes;
        let before = self.processes.remove(process).and_then(|entry| entry.waits_since);
        let since = before.unwrap_or(changed);
        let others = self.processes.values().map(|entry| entry.held).sum::<usize>();
        let free = most.saturating_sub(others.saturating_add(held));
        let others = || self.processes.values().filter_map(|entry| entry.waits_since);
        // One permit is kept for each process that has waited longer: it may be dead.
        let left = free.saturating_sub(others().filter(|other| *other < since).count());
        let gets = match others().next() {
            Some(_) => waiting.min(left).min(1),
            None => waiting.min(left),
        };
        let waits_since = match (waiting - gets, gets) {
            (0, _) => None,
            (_, 0) => Some(since),
            _ => Some(changed),
        };
        let held = held + gets;
        if held > 0 || waits_since.is_some() {
            let entry = Entry {
                held,
                changed,
                waits_since,
            };
            self.processes.insert(process.to_owned(), entry);
        }
        gets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_process_that_has_waited_longest_is_next() {
        let mut ledger = PermitLedger::default();
        assert_eq!(ledger.note("a", 0, 1, 1), 1);
        assert_eq!(ledger.note("b", 0, 1, 1), 0);
        assert_eq!(ledger.note("c", 0, 1, 1), 0);
        // The process that gives its permit back does not get it again at once.
        assert_eq!(ledger.note("a", 0, 1, 1), 0);
        assert_eq!(ledger.note("c", 0, 1, 1), 0);
        assert_eq!(ledger.note("b", 0, 2, 1), 1);
        assert_eq!(
            ledger.note("b", 0, 1, 1),
            0,
            "the second call of `b` comes after those of the others"
        );
        assert_eq!(ledger.note("c", 0, 1, 1), 1);
    }

    #[test]
    fn a_process_gets_all_that_is_free_if_no_other_one_waits() {
        let mut ledger = PermitLedger::default();
        assert_eq!(ledger.note("a", 0, 5, 3), 3);
        assert_eq!(ledger.note("b", 0, 5, 3), 0);
        assert_eq!(ledger.note("a", 1, 2, 3), 1, "the turn of `a` came before");
        assert_eq!(ledger.note("a", 0, 0, 3), 0);
        assert_eq!(ledger.note("b", 0, 5, 3), 3);
    }

    #[test]
    fn a_process_that_waits_and_does_not_ask_holds_one_permit_up() {
        let mut ledger = PermitLedger::default();
        assert_eq!(ledger.note("a", 0, 3, 3), 3);
        assert_eq!(ledger.note("dead", 0, 1, 3), 0);
        assert_eq!(ledger.note("b", 0, 1, 3), 0);
        assert_eq!(ledger.note("a", 0, 0, 3), 0);
        assert_eq!(ledger.note("b", 0, 2, 3), 1);
        assert_eq!(ledger.note("b", 1, 1, 3), 1);
        assert_eq!(ledger.note("b", 2, 1, 3), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_without_a_sign_of_life_loses_its_permits() {
        let (mut ledger, mut seen) = (PermitLedger::default(), Seen::default());
        assert_eq!(ledger.note("dead", 0, 1, 1), 1);
        assert_eq!(ledger.note("alive", 0, 1, 1), 0);
        for _ in 0..3 {
            ledger.bury(&mut seen, Instant::now());
            assert_eq!(ledger.note("alive", 0, 1, 1), 0);
            tokio::time::advance(SILENCE / 3).await;
        }
        ledger.bury(&mut seen, Instant::now());
        assert_eq!(ledger.note("alive", 0, 1, 1), 1);
        assert_eq!(seen.len(), 2);
        ledger.bury(&mut seen, Instant::now());
        assert_eq!(seen.len(), 1, "what is gone is forgotten");
    }

    proptest! {
        /// Each process holds and awaits permits as it likes: no permit is given twice, none stays free
        /// while all wait, and each process gets its turn.
        #[test]
        fn permits_are_given_once_and_in_turn(
            acts in prop::collection::vec((0..3usize, 0..4usize, 0..4usize), 0..100),
            most in 1..4usize,
        ) {
            let names = ["a", "b", "c"];
            let (mut ledger, mut held) = (PermitLedger::default(), [0; 3]);
            for (process, ended, waiting) in acts {
                held[process] -= ended.min(held[process]);
                held[process] += ledger.note(names[process], held[process], waiting, most);
                prop_assert!(held.iter().sum::<usize>() <= most);
            }
            // Now all processes end their calls, and wait for one.
            let mut got = [0; 3];
            for turn in 0..40 {
                for process in 0..3 {
                    got[process] += ledger.note(names[process], 0, 1, most);
                }
                prop_assert!(got.iter().sum::<usize>() >= turn / 2, "{:?}", got);
            }
            prop_assert!(got.iter().all(|got| *got >= 5), "{:?}", got);
        }
    }
}
