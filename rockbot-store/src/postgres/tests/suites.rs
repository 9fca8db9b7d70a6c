//! The conformance suites.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::store::WorkingLimits;
use rockbot_core::testing::conformance;
use rockbot_core::turn::{
    Acceptance, Claim, ClusterJournal, FreeRun, HolderRequests, JournalError, RunAccepted, RunBody, RunQuery,
    RunRecord, StoredRun, TurnJournal,
};
use rockbot_core::{Clock, TurnId};

use super::with_server;
use crate::postgres::{PostgresOptions, PostgresTurnJournal};

#[tokio::test]
async fn keeps_the_promises_of_a_turn_journal() {
    with_server(async |server| {
        let make = async |clock| {
            let options = PostgresOptions::default().with_clock(Arc::new(clock));
            server.stores_with(options).await.journal
        };
        conformance::turn_journal(make).await;
    })
    .await;
}

/// The journals of two processes: each call goes to the other one than the call before.
#[derive(Debug)]
struct TwoProcesses {
    journals: [Arc<PostgresTurnJournal>; 2],
    calls: AtomicUsize,
}

impl TwoProcesses {
    fn next(&self) -> &PostgresTurnJournal {
        &self.journals[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

#[async_trait]
impl TurnJournal for TwoProcesses {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        self.next().accept(accepted, owner, lease).await
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        self.next().append(claim, records).await
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        self.next().request_cancel(run).await
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        self.next().finish(claim, outcome).await
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        self.next().claim(run, owner, lease).await
    }

    async fn release(&self, claim: Claim) {
        self.next().release(claim).await;
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        self.next().read(run).await
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        self.next().unfinished(query).await
    }

    fn cluster(&self) -> Option<&dyn ClusterJournal> {
        Some(self)
    }
}

#[async_trait]
impl ClusterJournal for TwoProcesses {
    fn lease(&self) -> Duration {
        self.next().lease()
    }

    async fn renew(&self, owner: &str, runs: &[TurnId]) -> Result<Vec<TurnId>, JournalError> {
        self.next().renew(owner, runs).await
    }

    async fn free(&self, query: &RunQuery) -> Result<Vec<FreeRun>, JournalError> {
        self.next().free(query).await
    }

    async fn enter_session(&self, claim: &Claim) -> Result<bool, JournalError> {
        self.next().enter_session(claim).await
    }

    async fn leave_session(&self, claim: &Claim) -> Result<(), JournalError> {
        self.next().leave_session(claim).await
    }
}

#[tokio::test]
async fn two_processes_keep_the_promises_of_one_journal() {
    with_server(async |server| {
        let make = async |clock| {
            let (schema, options) = (
                server.new_schema(),
                PostgresOptions::default().with_clock(Arc::new(clock)),
            );
            let open = async || server.open(&schema, options.clone()).await.journal;
            let (journals, calls) = ([open().await, open().await], AtomicUsize::new(0));
            TwoProcesses { journals, calls }
        };
        conformance::turn_journal(&make).await;
        conformance::cluster_journal(&make).await;
    })
    .await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_memory() {
    with_server(async |server| conformance::conversation_memory(async || server.stores().await.conversations).await)
        .await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_rules_store() {
    with_server(async |server| conformance::rules_store(async || server.stores().await.rules).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory() {
    with_server(async |server| conformance::long_term_memory(async || server.stores().await.long_term).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_media_store() {
    with_server(async |server| conformance::media_store(async || server.stores().await.media).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_vector_cache() {
    with_server(async |server| conformance::vector_cache(async || server.stores().await.vectors).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_shared_documents() {
    with_server(async |server| conformance::shared_documents(async || server.stores().await.shared_documents).await)
        .await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_store() {
    with_server(async |server| conformance::skill_store(async || server.stores().await.skills).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_usage_store() {
    with_server(async |server| conformance::skill_usage_store(async || server.stores().await.skill_usage).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_feedback_store() {
    with_server(async |server| conformance::feedback_store(async || server.stores().await.feedback).await).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_log() {
    with_server(async |server| conformance::conversation_log(async || server.stores().await.conversation_log).await)
        .await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_working_memory() {
    with_server(async |server| {
        let make = async |clock: Arc<dyn Clock>, entries| {
            let limits = WorkingLimits::default().with_entries(entries);
            let options = PostgresOptions::default().with_working_limits(limits).with_clock(clock);
            server.stores_with(options).await.working
        };
        conformance::working_memory(make).await;
    })
    .await;
}
