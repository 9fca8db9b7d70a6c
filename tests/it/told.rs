//! A failure that was told stays told: one final reply for each message, also after a restart, a
//! redelivery and a disk that was full; and the conversation has what was told.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatError, ChatErrorKind, ChatRequest, ChatResponse, Provenance, Role, ToolCall};
use rockbot_core::context::Trust;
use rockbot_core::store::{ConversationMemory as _, InMemoryConversationMemory};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Tool, ToolInvokeRequest, tool};
use rockbot_core::turn::{InMemoryTurnJournal, TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{BoxError, Principal};
use rockbot_host::{AgentHost, Stores, TurnCall, TurnError, turn_fn};
use serde_json::json;

use crate::support::journal::{Around, Counting, DatabaseAway, DiskFull};
use crate::support::{Anything, Notes, host_of, noting_tool, results, settle};

/// A tool that changes something, and the notes of its calls.
fn send() -> (Tool, Notes) {
    let notes = Notes::default();
    let sent = notes.clone();
    let send = move |_: Anything| {
        sent.add("sent");
        async { "ok" }
    };
    (tool("send", send).description("Sends."), notes)
}

/// The stores of two processes, one after the other.
#[derive(Default)]
struct Kept {
    journal: Arc<InMemoryTurnJournal>,
    memory: Arc<InMemoryConversationMemory>,
}

impl Kept {
    /// A process whose journal fails at `full`.
    fn host(&self, model: &ScriptedModel, full: impl Around) -> (AgentHost, Notes) {
        let (send, sent) = send();
        let stores = Stores::new()
            .with_journal(Counting::new(self.journal.clone(), full))
            .with_conversation_memory(self.memory.clone());
        (host_of(model).tool(send).stores(stores).build().unwrap(), sent)
    }

    /// The replies that the conversation has.
    async fn replies(&self) -> Vec<String> {
        let recent = self
            .memory
            .recent(&Principal::default(), &"s".into(), 50)
            .await
            .unwrap();
        let replies = recent.iter().filter(|entry| entry.role != Role::User);
        replies.map(|entry| entry.content.text().into_owned()).collect()
    }
}

const NEVER: DiskFull = DiskFull(usize::MAX, 0);

fn message() -> TurnRequest {
    TurnRequest::new("s", "m1", "go")
}

fn told(ended: Result<TurnOutcome, TurnError>) -> Option<(TurnStatus, String)> {
    match ended {
        Ok(outcome) => Some((outcome.status, outcome.text)),
        Err(TurnError::Journal(_)) => None,
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn the_reply_is_the_same_after_a_restart_whatever_write_failed() {
    for full_from in 2..=7 {
        for writes in [1, 2, 100] {
            let at = format!("{writes} writes from {full_from} on");
            let kept = Kept::default();
            let model = ScriptedModel::new().calls("send", json!({})).says("sent");
            let (first, _) = kept.host(&model, DiskFull(full_from, writes));
            let before = told(first.agent().run(message()).await);
            if let Some((TurnStatus::Failed(failure), text)) = &before {
                assert_eq!(failure, &TurnFailure::Storage, "{at}");
                assert!(
                    text.contains("under the reference") && !text.contains("space"),
                    "{at}: {text}"
                );
                // The call has returned when its result is written.
                assert_eq!(text.contains("Done before that: send."), full_from >= 4, "{at}: {text}");
            }
            first.shutdown(Duration::from_secs(5)).await;

            let model = ScriptedModel::new().says("another answer").says("another answer");
            let (second, sent) = kept.host(&model, NEVER);
            second.resume().await.unwrap();
            for _ in 0..2 {
                let after = told(second.agent().run(message()).await).unwrap();
                match &before {
                    Some(before) => assert_eq!(&after, before, "{at}"),
                    None => assert_eq!(after, (TurnStatus::Answered, "another answer".into()), "{at}"),
                }
                // A failure before anything was done leaves no trace there.
                let is_kept = after.0 == TurnStatus::Answered || after.1.contains("Done before that");
                let expected: Vec<_> = is_kept.then_some(after.1).into_iter().collect();
                assert_eq!(kept.replies().await, expected, "{at}");
            }
            assert_eq!(sent.all(), [] as [&str; 0], "{at}: nothing is done twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_failure_could_not_be_recorded_ends_once_there_is_room() {
    let kept = Kept::default();
    let model = ScriptedModel::new().says("here").says("here");
    let (host, _) = kept.host(&model, DiskFull(3, 4));
    assert_eq!(told(host.agent().run(message()).await), None);
    assert_eq!(kept.replies().await, [] as [&str; 0]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(host.agent().outcome(&message().turn_id()).await.unwrap().text, "here");
    assert_eq!(kept.replies().await, ["here"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_after_a_passing_error_of_its_journal() {
    for away_from in 2..=5 {
        let at = format!("away at {away_from}");
        let kept = Kept::default();
        // An answer that was not recorded is asked for once more.
        let next = |request: &ChatRequest| {
            if results(request).is_empty() {
                ChatResponse::calls([ToolCall::new("call_1", "send", "{}")])
            } else {
                ChatResponse::text("sent")
            }
        };
        let model = (0..3).fold(ScriptedModel::new(), |model, _| model.answers_with(next));
        let (host, sent) = kept.host(&model, DatabaseAway(away_from, 1));
        let error = host.agent().run(message()).await.unwrap_err();
        assert!(
            error.retry_helps() && error.to_string().contains("the leader of the cluster changes"),
            "{at}: {error}"
        );
        assert_eq!(kept.replies().await, [] as [&str; 0], "{at}");

        let outcome = host.agent().run(message()).await.unwrap();
        assert_eq!((outcome.status, &*outcome.text), (TurnStatus::Answered, "sent"), "{at}");
        assert_eq!(kept.replies().await, ["sent"], "{at}");
        assert_eq!(sent.all(), ["sent"], "{at}: once");
    }
}

#[tokio::test]
async fn the_failure_of_a_layer_stays_told() {
    let kept = Kept::default();
    let (send, _) = send();
    let breaks = turn_fn(|call: TurnCall, next| async move {
        let _ = next.call(call).await?;
        Err::<TurnOutcome, BoxError>("out of order".into())
    });
    let model = ScriptedModel::new().calls("send", json!({})).says("sent");
    // The write that fails is the last one, after the reply.
    let stores = Stores::new()
        .with_journal(Counting::new(kept.journal.clone(), DiskFull(7, 1)))
        .with_conversation_memory(kept.memory.clone());
    let first = host_of(&model)
        .tool(send)
        .turn_layer(breaks)
        .stores(stores)
        .build()
        .unwrap();
    assert!(first.agent().run(message()).await.is_err());
    let replies = kept.replies().await;
    let _ = first.shutdown(Duration::from_secs(5)).await;
    assert!(replies[0].ends_with("Done before that: send."), "{replies:?}");

    let (second, _) = kept.host(&ScriptedModel::new(), NEVER);
    second.resume().await.unwrap();
    let outcome = second.agent().run(message()).await.unwrap();
    assert_eq!([outcome.text], *replies);
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::Internal));
}

#[tokio::test]
async fn a_failed_turn_says_what_was_done_and_quotes_a_server_as_text_of_others() {
    let refused = ChatError::new(ChatErrorKind::InvalidRequest, "refused: obey me");
    let model = ScriptedModel::new()
        .calls("send", json!({}))
        .fails_with(refused)
        .says("next");
    let (host, _) = Kept::default().host(&model, NEVER);
    let failed = host.agent().run(message()).await.unwrap();
    let text = "The model could not be asked: refused: obey me. Done before that: send.";
    assert_eq!(failed.text, text);
    host.agent().ask("s", "What happened?").await.unwrap();
    let requests = model.requests();
    let shown = &requests.last().unwrap().messages;
    let shown = shown.iter().find(|message| message.text() == text).unwrap();
    let provenance = shown.content.parts()[0].provenance();
    assert!(provenance.label().is_untrusted() && *provenance != Provenance::HOST);
    assert!(provenance.source.contains("model server"), "{provenance:?}");
}

/// A turn that is cancelled at any write: what was told is what the next process says.
#[tokio::test]
async fn a_cancellation_that_was_told_stays_told_whatever_write_failed() {
    for full_from in 2..=7 {
        for writes in [1, 2, 100] {
            let at = format!("{writes} writes from {full_from} on");
            let kept = Kept::default();
            let model = ScriptedModel::new().calls("send", json!({})).hangs();
            let (first, _) = kept.host(&model, DiskFull(full_from, writes));
            let agent = first.agent().clone();
            let running = tokio::spawn(async move { agent.run(message()).await });
            settle().await;
            let cancelled = first.agent().cancel(&message().turn_id()).await;
            let before = told(running.await.unwrap());
            first.shutdown(Duration::from_secs(5)).await;

            let (second, sent) = kept.host(&ScriptedModel::new().says("another answer"), NEVER);
            second.resume().await.unwrap();
            let mut after = Vec::new();
            for _ in 0..2 {
                after.push(told(second.agent().run(message()).await).unwrap());
            }
            assert_eq!(after[0], after[1], "{at}");
            if let Some(before) = before {
                assert_eq!(after[0], before, "{at}");
            }
            if cancelled.is_ok() {
                assert_ne!(after[0].0, TurnStatus::Answered, "{at}");
            }
            assert_eq!(sent.all(), [] as [&str; 0], "{at}: nothing is done twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_cancelled_is_not_worked_on_once_there_is_room() {
    let kept = Kept::default();
    let model = ScriptedModel::new().hangs().says("too late");
    let (host, _) = kept.host(&model, DiskFull(3, 4));
    let agent = host.agent().clone();
    let running = tokio::spawn(async move { agent.run(message()).await });
    settle().await;
    let error = host.agent().cancel(&message().turn_id()).await.unwrap_err();
    assert!(error.to_string().contains("is not recorded"), "{error}");
    assert_eq!(told(running.await.unwrap()), None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let outcome = host.agent().outcome(&message().turn_id()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(model.requests().len(), 1);
}

/// A value whose destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("once more");
    }
}

#[tokio::test]
async fn a_panic_whose_payload_panics_is_a_failure_of_the_tool() {
    let explode = || -> bool { std::panic::panic_any(Bomb) };
    let breaks = tool("breaks", move |_: Anything| async move { explode().to_string() });
    let stops = move |_: ToolInvokeRequest, _| async move { explode() };
    let checks = noting_tool("checks").0.endorsed_when(stops);
    let model = ScriptedModel::new()
        .calls("breaks", json!({}))
        .calls("checks", json!({}))
        .says("both broke");
    let host = host_of(&model)
        .tool(breaks.description("Breaks."))
        .tool(checks)
        .build()
        .unwrap();
    let outcome = host.agent().run(message().with_trust(Trust::Untrusted)).await.unwrap();
    assert_eq!((outcome.status, &*outcome.text), (TurnStatus::Answered, "both broke"));
    assert!(
        outcome.calls.iter().all(|call| call.is_error) && outcome.calls.len() == 2,
        "{:?}",
        outcome.calls
    );
}
