//! The in-memory journal: fast, and lost when the process ends.
//!
//! A host without a data folder keeps 1 000 outcomes, not the outcomes of a day: nothing
//! redelivers to it after its end, and a busy test would fill the memory. A program that wants
//! more gives it an `InMemoryTurnJournal` of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::{
    Acceptance, Claim, ClaimTable, HolderRequests, JournalError, RunAccepted, RunBody, RunQuery, RunRecord, RunState,
    StoredRun, TurnJournal,
};
use crate::support::DigestMap;
use crate::{Clock, SystemClock, Timestamp, TurnId};

/// Retention of the outcome of a finished run, to answer redeliveries.
const OUTCOMES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A [`TurnJournal`] in memory.
///
/// Redeliveries, claims and leases work as in every journal; a crash loses all runs. A finished
/// run keeps only its identity, its digest and its outcome, for 24 hours;
/// [`InMemoryTurnJournal::with_max_outcomes`] bounds their number.
#[derive(Debug)]
pub struct InMemoryTurnJournal {
    clock: Arc<dyn Clock>,
    max_outcomes: usize,
    state: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    claims: ClaimTable,
    runs: DigestMap<TurnId, JournalRun>,
    /// Unfinished runs by the number of their acceptance, which is the order that `unfinished` returns.
    unfinished: BTreeMap<u64, TurnId>,
    /// Finished runs in the order of their ends, so that expired outcomes are found at the front.
    finished: VecDeque<(Timestamp, TurnId)>,
    accepted: u64,
}

#[derive(Debug)]
struct JournalRun {
    number: u64,
    stored: StoredRun,
}

impl Default for InMemoryTurnJournal {
    /// Creates a journal on the operating system's clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl InMemoryTurnJournal {
    /// Creates a journal that measures leases and the age of outcomes on `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            max_outcomes: usize::MAX,
            state: Mutex::default(),
        }
    }

    /// Sets the maximum number of outcomes that are kept; beyond it the oldest is evicted, and its
    /// message is a new run when it comes again. Default: all of the last 24 hours.
    #[must_use]
    pub fn with_max_outcomes(mut self, max_outcomes: usize) -> Self {
        self.max_outcomes = max_outcomes;
        self
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // No code that can panic runs under the lock, so a poisoned lock still guards consistent data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalState {
    fn evict_outcomes(&mut self, now: Timestamp, max: usize) {
        // Ends are queued in order, so the first outcome that is young enough ends the scan.
        while let Some((finished, run)) = self.finished.front()
            && (self.finished.len() > max || now.since(*finished) >= OUTCOMES_KEPT)
        {
            self.runs.remove(run);
            self.finished.pop_front();
        }
    }

    fn insert(&mut self, accepted: RunAccepted) {
        self.accepted += 1;
        self.unfinished.insert(self.accepted, accepted.run.clone());
        let run = JournalRun {
            number: self.accepted,
            stored: StoredRun {
                accepted,
                records: Vec::new(),
                state: RunState::Unfinished,
            },
        };
        self.runs.insert(run.stored.accepted.run.clone(), run);
    }
}

#[async_trait]
impl TurnJournal for InMemoryTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        let now = self.clock.now();
        let mut state = self.lock();
        // Before the lookup: a redelivery after the retention period is a new run, as in a journal on
        // disk.
        state.evict_outcomes(now, self.max_outcomes);
        if let Some(JournalRun { stored, .. }) = state.runs.get(&accepted.run) {
            // The same id with another text is not a redelivery: answering it from the first run would give
            // the sender an answer to a question that it did not ask.
            if stored.accepted.digest != accepted.digest {
                return Err(JournalError::Conflict {
                    session: accepted.key.session.clone(),
                    message: accepted.key.message.clone(),
                });
            }
            return Ok(Acceptance::Known(stored.state.clone()));
        }
        state.insert(accepted.clone());
        Ok(Acceptance::New(state.claims.accept(
            accepted.run.clone(),
            owner,
            lease,
            now,
        )))
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        let now = self.clock.now();
        let mut state = self.lock();
        let requests = state.claims.check(claim, now)?;
        if let Some(run) = state.runs.get_mut(claim.run()) {
            run.stored.records.extend_from_slice(records);
        }
        Ok(requests)
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        Ok(self.lock().claims.request_cancel(run))
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        let now = self.clock.now();
        let mut state = self.lock();
        // The fence is checked under the same lock as the write, so that a superseded claim cannot
        // finish the run.
        state.claims.check(claim, now)?;
        state.claims.forget(claim.run());
        if let Some(JournalRun { number, stored }) = state.runs.get_mut(claim.run()) {
            let number = *number;
            // An outcome is kept for a day, but its records and request are not needed to answer a redelivery.
            stored.records = Vec::new();
            stored.accepted.body = RawValue::NULL.to_owned().into();
            stored.state = RunState::Finished(outcome.clone());
            state.unfinished.remove(&number);
            state.finished.push_back((now, claim.run().clone()));
            state.evict_outcomes(now, self.max_outcomes);
        }
        Ok(())
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        let now = self.clock.now();
        Ok(self.lock().claims.claim(run, owner, lease, now))
    }

    async fn release(&self, claim: Claim) {
        self.lock().claims.release(&claim);
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        Ok(self.lock().runs.get(run).map(|run| run.stored.clone()))
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        let state = self.lock();
        let is_wanted = |run: &TurnId| query.matches(&state.runs[run].stored.accepted.key);
        let runs = state.unfinished.values().filter(|run| is_wanted(run));
        Ok(runs.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::testing::{ManualClock, conformance};
    use crate::turn::RunKey;

    #[tokio::test]
    async fn keeps_the_promises_of_a_journal() {
        conformance::turn_journal(async |clock| InMemoryTurnJournal::new(Arc::new(clock))).await;
    }

    fn run(name: &str) -> RunAccepted {
        let key = RunKey::new("local".into(), "session", name);
        let body = RawValue::NULL.to_owned();
        RunAccepted::new(name, key, Digest::of([name]), Timestamp::default(), body)
    }

    #[tokio::test]
    async fn the_oldest_outcomes_make_room_for_later_ones() {
        let journal = InMemoryTurnJournal::default().with_max_outcomes(2);
        for name in ["a", "b", "c"] {
            let Acceptance::New(claim) = journal.accept(&run(name), "me", OUTCOMES_KEPT).await.unwrap() else {
                panic!("the run is new")
            };
            journal.finish(&claim, &RawValue::TRUE.to_owned().into()).await.unwrap();
        }
        let mut known = Vec::new();
        for name in ["a", "b", "c"] {
            known.push(journal.read(&name.into()).await.unwrap().is_some());
        }
        assert_eq!(known, [false, true, true]);
    }

    #[tokio::test]
    async fn an_outcome_is_forgotten_after_a_day() {
        let clock = ManualClock::default();
        let journal = InMemoryTurnJournal::new(Arc::new(clock.clone()));
        let run = run("message");
        let Acceptance::New(claim) = journal.accept(&run, "me", OUTCOMES_KEPT).await.unwrap() else {
            panic!("the run is new")
        };
        journal.finish(&claim, &RawValue::TRUE.to_owned().into()).await.unwrap();
        clock.advance(OUTCOMES_KEPT);
        let again = journal.accept(&run, "me", OUTCOMES_KEPT).await.unwrap();
        assert!(matches!(again, Acceptance::New(_)));
    }
}
