//! Failures of the journal: no claim on a turn outlives them, and a cancellation says whether it
//! holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::testing::{ManualClock, ScriptedModel, mock_tool};
use rockbot_core::turn::{Approval, InMemoryTurnJournal, TurnJournal, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, Stores, TurnError};
use rockbot_store::file::{Durability, FileTurnJournal, JournalOptions};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::journal::{BadReads, Counting, DiskFull, SlowDisk, run};
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
    let reads = BadReads::default();
    let journal = Arc::new(Counting::new(InMemoryTurnJournal::default(), reads.clone()));
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
    settle().await;
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

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_cut_leaves_its_turns_to_another_host() {
    let journal = Arc::new(InMemoryTurnJournal::default());
    let host = |model: &ScriptedModel| {
        let (pay, paying) = mock_tool("pay");
        let host = host_of(model)
            .tool(pay)
            .stores(Stores::new().with_journal(journal.clone()))
            .build()
            .unwrap();
        (host, paying)
    };
    let (first, mut paying) = host(&ScriptedModel::new().calls("pay", json!({})));
    let request = TurnRequest::new("s", "m1", "pay");
    let agent = first.agent().clone();
    let asked = request.clone();
    tokio::spawn(async move { agent.run(asked).await });
    let _running = paying.next_call().await;
    first.shutdown(Duration::from_secs(1)).await;
    // The runtime drops an aborted task when it comes to it.
    settle().await;
    let (second, _) = host(&ScriptedModel::new().says("It is unclear."));
    assert_eq!(second.start().await.unwrap().running, [request.turn_id()]);
    let outcome = second.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!(outcome.text, "It is unclear.");
}

#[tokio::test]
async fn a_decision_whose_caller_goes_away_is_carried_out() {
    let written = Arc::new(Semaphore::new(9));
    let journal = Counting::new(InMemoryTurnJournal::default(), SlowDisk(written.clone()));
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
    let (pay, paid) = noting_tool("pay");
    let host = host_of(&model)
        .tool(pay.needs_approval())
        .stores(Stores::new().with_journal(journal))
        .build()
        .unwrap();
    let parked = host.agent().run(TurnRequest::new("s", "m1", "pay")).await.unwrap();
    let TurnStatus::Parked(asks) = parked.status else {
        panic!("the turn should wait")
    };
    // The decision is written, and its caller does not learn so.
    written.forget_permits(9);
    tokio::select! {
        biased;
        decided = host.agent().decide(asks[0].approve()) => panic!("it was not written: {decided:?}"),
        () = settle() => {}
    }
    assert!(paid.all().is_empty());
    written.add_permits(9);
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!((outcome.text.as_str(), paid.all().len()), ("Paid.", 1));
}

#[tokio::test]
async fn an_acceptance_that_is_given_up_leaves_no_claim() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let options = JournalOptions::default().with_durability(Durability::Synced);
    let journal = FileTurnJournal::open_with(folder.path(), options).unwrap();
    let accepted = run("1", &clock);
    let lease = Duration::from_secs(60);
    // It waits for the disk when it is dropped.
    assert!(journal.accept(&accepted, "me", lease).now_or_never().is_none());
    assert!(journal.claim(&accepted.run, "me", lease).await.unwrap().is_some());
}
