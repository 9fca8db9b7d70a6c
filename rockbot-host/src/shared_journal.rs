//! A journal that several agents share: each sees its own runs alone.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::TurnId;
use rockbot_core::turn::{
    Acceptance, Claim, ClusterJournal, FreeRun, HolderRequests, JournalError, RunAccepted, RunBody, RunQuery,
    RunRecord, StoredRun, TurnJournal,
};

/// The runs of one agent in a journal that several agents share.
///
/// Runs have the same ids for every agent, since these derive from the message; in the shared
/// journal the name of the agent stands before the id, and in the key of the run.
#[derive(Debug)]
pub(crate) struct SharedTurnJournal {
    journal: Arc<dyn TurnJournal>,
    agent: String,
}

impl SharedTurnJournal {
    /// Creates the part of `journal` that belongs to `agent`.
    pub(crate) fn new(journal: Arc<dyn TurnJournal>, agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self { journal, agent }
    }

    fn shared_id(&self, run: &TurnId) -> TurnId {
        TurnId::from(format!("{}/{run}", self.agent))
    }

    fn own_id(&self, run: &TurnId) -> Option<TurnId> {
        let own = run.as_str().strip_prefix(&self.agent)?.strip_prefix('/')?;
        Some(TurnId::from(own))
    }

    fn own_ids(&self, runs: &[TurnId]) -> Vec<TurnId> {
        runs.iter().filter_map(|run| self.own_id(run)).collect()
    }

    fn inner(&self) -> &dyn ClusterJournal {
        let inner = self.journal.cluster();
        inner.expect("this journal is one of a cluster only over the journal of a cluster")
    }

    /// Returns an error about a run of this agent under the run's own id.
    fn own_error(&self, error: JournalError) -> JournalError {
        match error {
            JournalError::Fenced(run) => JournalError::Fenced(self.own_id(&run).unwrap_or(run)),
            error => error,
        }
    }

    fn own_claim(&self, claim: &Claim) -> Claim {
        let own = self.own_id(claim.run()).unwrap_or_else(|| claim.run().clone());
        Claim::new(own, claim.fence())
    }

    fn shared_claim(&self, claim: &Claim) -> Claim {
        Claim::new(self.shared_id(claim.run()), claim.fence())
    }
}

#[async_trait]
impl TurnJournal for SharedTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        let mut accepted = accepted.clone();
        accepted.run = self.shared_id(&accepted.run);
        accepted.key.agent = Some(self.agent.clone());
        Ok(match self.journal.accept(&accepted, owner, lease).await? {
            Acceptance::New(claim) => Acceptance::New(self.own_claim(&claim)),
            known => known,
        })
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        let appended = self.journal.append(&self.shared_claim(claim), records).await;
        appended.map_err(|error| self.own_error(error))
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        self.journal.request_cancel(&self.shared_id(run)).await
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        let finished = self.journal.finish(&self.shared_claim(claim), outcome).await;
        finished.map_err(|error| self.own_error(error))
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        let claim = self.journal.claim(&self.shared_id(run), owner, lease).await?;
        Ok(claim.map(|claim| self.own_claim(&claim)))
    }

    async fn release(&self, claim: Claim) {
        self.journal.release(self.shared_claim(&claim)).await;
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        let mut stored = self.journal.read(&self.shared_id(run)).await?;
        if let Some(stored) = &mut stored {
            stored.accepted.run = run.clone();
        }
        Ok(stored)
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        let query = query.clone().with_agent(self.agent.clone());
        let runs = self.journal.unfinished(&query).await?;
        Ok(self.own_ids(&runs))
    }

    fn cluster(&self) -> Option<&dyn ClusterJournal> {
        self.journal.cluster().map(|_| self as &dyn ClusterJournal)
    }
}

#[async_trait]
impl ClusterJournal for SharedTurnJournal {
    fn lease(&self) -> Duration {
        self.inner().lease()
    }

    async fn renew(&self, owner: &str, runs: &[TurnId]) -> Result<Vec<TurnId>, JournalError> {
        let runs: Vec<_> = runs.iter().map(|run| self.shared_id(run)).collect();
        Ok(self.own_ids(&self.inner().renew(owner, &runs).await?))
    }

    async fn free(&self, query: &RunQuery) -> Result<Vec<FreeRun>, JournalError> {
        let query = query.clone().with_agent(self.agent.clone());
        let free = self.inner().free(&query).await?;
        let own = |free: &FreeRun| Some(FreeRun::new(self.own_id(&free.run)?, free.is_waiting));
        Ok(free.iter().filter_map(own).collect())
    }

    async fn enter_session(&self, claim: &Claim) -> Result<bool, JournalError> {
        let entered = self.inner().enter_session(&self.shared_claim(claim)).await;
        entered.map_err(|error| self.own_error(error))
    }

    async fn leave_session(&self, claim: &Claim) -> Result<(), JournalError> {
        let left = self.inner().leave_session(&self.shared_claim(claim)).await;
        left.map_err(|error| self.own_error(error))
    }
}
