//! Failures of the journal: no claim on a turn outlives them, and a cancellation says whether it holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::turn::{Approval, InMemoryTurnJournal, TurnJournal, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, Stores, TurnError};
use serde_json::json;

use crate::support::journal::{BadReads, Counting, DiskFull};
use crate::support::{host_of, noting_tool, settle};

/// A host whose turn waits for a decision, and its journal's next reads.
async fn parked() -> (AgentHost, Approval, BadReads) {
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("paid");
    let reads = BadReads::default();
    let journal = Counting::new(InMemoryTurnJournal::default(), reads.clone());
    let host = host_of(&model)
        .tool(noting_tool("pay").0.needs_approval())
        .stores(Stores::new().with_journal(journal))
        .build()
        .unwrap();
    let outcome = host.agent().run(TurnRequest::new("s", "m1", "pay")).await.unwrap();
    let TurnStatus::Parked(asks) = outcome.status else {
        panic!("the turn should wait")
    };
    (host, asks[0].approve(), reads)
}

#[tokio::test]
async fn a_failed_read_does_not_keep_a_turn_from_its_decision() {
    let (host, approval, reads) = parked().await;
    reads.0.store(1, Ordering::SeqCst);
    let failed = host.agent().decide(approval.clone()).await;
    assert!(matches!(failed, Err(TurnError::Journal(_))), "{failed:?}");
    host.agent().decide(approval.clone()).await.unwrap();
    assert_eq!(host.agent().outcome(&approval.turn).await.unwrap().text, "paid");
}

#[tokio::test]
async fn a_failed_read_does_not_keep_a_turn_from_its_cancellation() {
    let (host, approval, reads) = parked().await;
    reads.0.store(1, Ordering::SeqCst);
    let failed = host.agent().cancel(&approval.turn).await;
    assert!(matches!(failed, Err(TurnError::Journal(_))), "{failed:?}");
    host.agent().cancel(&approval.turn).await.unwrap();
    let outcome = host.agent().outcome(&approval.turn).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_cancellation_of_a_turn_that_another_process_holds_says_so() {
    let model = ScriptedModel::new().calls("pay", json!({"n": 7}));
    let journal = Arc::new(InMemoryTurnJournal::default());
    let host = host_of(&model)
        .tool(noting_tool("pay").0.needs_approval())
        .stores(Stores::new().with_journal(journal.clone()))
        .build()
        .unwrap();
    let parked = host.agent().run(TurnRequest::new("s", "m1", "pay")).await.unwrap();
    let held = journal.claim(&parked.turn, "another", Duration::from_secs(60)).await;
    assert!(held.unwrap().is_some());
    let cancelled = host.agent().cancel(&parked.turn).await;
    assert!(matches!(cancelled, Err(TurnError::Elsewhere(_))), "{cancelled:?}");
}

#[tokio::test]
async fn a_turn_that_cannot_be_read_keeps_no_other_from_being_resumed() {
    let (clock, reads) = (ManualClock::new(Timestamp::from_millis(0)), BadReads::default());
    let journal = InMemoryTurnJournal::new(Arc::new(clock.clone()));
    let journal = Arc::new(Counting::new(journal, reads.clone()));
    let first = host_of(&ScriptedModel::new().hangs().hangs())
        .stores(Stores::new().with_journal(journal.clone()))
        .build()
        .unwrap();
    let requests = [TurnRequest::new("a", "1", "one"), TurnRequest::new("b", "2", "two")];
    for request in requests.clone() {
        let agent = first.agent().clone();
        tokio::spawn(async move { agent.run(request).await });
        settle().await;
    }
    drop(first);
    clock.advance(Duration::from_secs(2 * 60 * 60));
    let second = host_of(&ScriptedModel::new().hangs().hangs())
        .stores(Stores::new().with_journal(journal))
        .build()
        .unwrap();
    reads.0.store(1, Ordering::SeqCst);
    assert_eq!(second.start().await.unwrap().running, [requests[1].turn_id()]);
    assert_eq!(second.resume().await.unwrap().running, [requests[0].turn_id()]);
}

#[tokio::test]
async fn a_message_whose_turn_could_not_be_written_is_answered_when_it_comes_again() {
    for failing in 2..=4 {
        let journal = Counting::new(InMemoryTurnJournal::default(), DiskFull(failing, 1));
        let model = ScriptedModel::new().says("Hello.").says("Hello.");
        let host = host_of(&model)
            .stores(Stores::new().with_journal(journal))
            .build()
            .unwrap();
        let request = TurnRequest::new("s", "1", "Hi!");
        let first = host.agent().run(request.clone()).await.unwrap();
        let again = host.agent().run(request).await.unwrap();
        assert_eq!(again.turn, first.turn, "write {failing}");
        assert!(again.is_final(), "write {failing}");
    }
}
