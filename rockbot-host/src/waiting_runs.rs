//! Runs of the turn journal that hold something which is delivered later: a transactional outbox.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::turn::{Acceptance, Claim, JournalError, RunAccepted, RunBody, RunKey, RunState, TurnJournal};
use rockbot_core::{Digest, Principal, SessionId, Timestamp, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Duration of the claim on a waiting run. The run is held for it while it is delivered.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// The runs of one kind that wait in the turn journal.
pub(crate) struct WaitingRuns {
    journal: Arc<dyn TurnJournal>,
    owner: String,
    /// Beginning of the ids of the runs. No id of a turn has it: ids of turns are hexadecimal
    /// digits.
    prefix: &'static str,
}

/// The content of a waiting run, with the conversation that it belongs to.
pub(crate) struct WaitingRun<T> {
    pub(crate) principal: Principal,
    pub(crate) session: SessionId,
    pub(crate) content: Result<T, serde_json::Error>,
}

impl WaitingRuns {
    /// Creates the runs whose ids begin with `prefix`; `owner` is the name of this process in the
    /// journal.
    pub(crate) fn new(journal: Arc<dyn TurnJournal>, owner: String, prefix: &'static str) -> Self {
        Self { journal, owner, prefix }
    }

    /// Keeps `content` as a run of the journal, and returns the id of the run. The same `id` is the
    /// same run: returns `None` if it was delivered already.
    pub(crate) async fn keep<T: Serialize + Send + Sync + 'static>(
        &self,
        (principal, session): (&Principal, &SessionId),
        id: &str,
        at: Timestamp,
        content: T,
    ) -> Result<Option<TurnId>, JournalError> {
        let run = TurnId::from(format!("{}{id}", self.prefix));
        let key = RunKey::new(principal.clone(), session.clone(), id).with_source(self.prefix);
        // The digest is the digest of the id: after a crash the same content may have another time.
        let accepted = RunAccepted::new(run.clone(), key, Digest::of([id]), at, RunBody::new(Arc::new(content)));
        match self.journal.accept(&accepted, &self.owner, LEASE).await? {
            Acceptance::New(claim) => self.journal.release(claim).await,
            Acceptance::Known(RunState::Finished(_)) => return Ok(None),
            _ => {}
        }
        Ok(Some(run))
    }

    /// Returns the content of a run; `None` if it was delivered.
    pub(crate) async fn read<T: DeserializeOwned>(&self, run: &TurnId) -> Result<Option<WaitingRun<T>>, JournalError> {
        let Some(stored) = self.journal.read(run).await? else {
            return Ok(None);
        };
        if matches!(stored.state, RunState::Finished(_)) {
            return Ok(None);
        }
        let RunKey { principal, session, .. } = stored.accepted.key;
        let content = stored.accepted.body.parse();
        Ok(Some(WaitingRun {
            principal,
            session,
            content,
        }))
    }

    /// Claims a run for its delivery; `None` if it was delivered, or another process holds it.
    pub(crate) async fn claim(&self, run: &TurnId) -> Result<Option<Claim>, JournalError> {
        self.journal.claim(run, &self.owner, LEASE).await
    }

    /// Ends a run that was delivered.
    pub(crate) async fn finish(&self, run: &TurnId) -> Result<(), JournalError> {
        match self.claim(run).await? {
            Some(claim) => self.finish_claimed(claim).await,
            None => Ok(()),
        }
    }

    /// Ends a run that this process holds.
    pub(crate) async fn finish_claimed(&self, claim: Claim) -> Result<(), JournalError> {
        let finished = self.journal.finish(&claim, &RawValue::NULL.to_owned().into()).await;
        if finished.is_err() {
            self.journal.release(claim).await;
        }
        finished
    }
}
