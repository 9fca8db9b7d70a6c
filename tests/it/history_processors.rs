//! History processors of a program: what the model reads, what is kept, and what the journal has
//! of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::BoxError;
use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::chat::ContextReason;
use rockbot::chat::{ChatCall, ChatClient, ChatError, ChatMessage, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot::implement::turn::{HistoryError, HookLimits, TurnView, check_history};
use rockbot::testing::ScriptedModel;
use rockbot::turn::{HistoryProcessor, TurnPolicies, TurnRequest, TurnStatus, history_fn};
use serde_json::json;

use crate::crash::{journal_of, prefixes, read_journal};
use crate::support::{Notes, calls, ending, host_of, noting_tool, transcript};

type Messages = Vec<Arc<ChatMessage>>;

fn without_history() -> impl HistoryProcessor {
    history_fn(|mut messages: Messages, _| async move {
        messages.retain(|message| message.why() != ContextReason::History);
        Ok(messages)
    })
}

fn user(text: &str) -> Arc<ChatMessage> {
    Arc::new(ChatMessage::user(text))
}

#[tokio::test]
async fn the_model_reads_what_the_processors_left_and_the_conversation_keeps_what_was_said() {
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let loud = history_fn(|mut messages: Messages, _| async move {
        let last = messages.pop().ok_or("a request has messages")?;
        messages.push(user(&last.text().to_uppercase()));
        Ok(messages)
    });
    let host = host_of(&model)
        .history_processor(without_history())
        .history_processor(loud)
        .build()
        .unwrap();
    host.agent().ask("s", "first").await.unwrap();
    host.agent().ask("s", "second").await.unwrap();
    assert_eq!(transcript(&model.requests()[1])[1..], ["user: SECOND"]);

    // The next turn begins with the conversation as it was.
    let seen = Notes::default();
    let notes = seen.clone();
    let spy = history_fn(move |messages: Messages, _| {
        messages.iter().for_each(|message| notes.add(message.text()));
        async { Ok(messages) }
    });
    let model = ScriptedModel::new().says("one").says("two");
    let host = host_of(&model)
        .instructions("You are agent.")
        .history_processor(spy)
        .history_processor(without_history())
        .build()
        .unwrap();
    host.agent().ask("s", "first").await.unwrap();
    host.agent().ask("s", "second").await.unwrap();
    assert_eq!(seen.all()[2..], ["You are agent.", "first", "one", "second"]);
}

#[tokio::test]
async fn an_edit_holds_for_the_rest_of_the_turn_and_is_recorded_once() {
    let folder = tempfile::tempdir().unwrap();
    let look = |model: ScriptedModel| model.calls("look", json!({}));
    let model = look(look(ScriptedModel::new().says("An answer of long ago."))).says("Done.");
    let host = host_of(&model).tool(noting_tool("look").0).data_dir(folder.path());
    let host = host.history_processor(without_history()).build().unwrap();
    host.agent().ask("s", "A question of long ago.").await.unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    let journal = read_journal(folder.path());
    assert_eq!(journal.matches("history_edited").count(), 1, "{journal}");
    assert!(
        journal.contains(r#"{"edits":[{"keep":[0,1]},{"keep":[3,1]}]}"#),
        "{journal}"
    );
    let last = &model.requests()[3];
    assert_eq!(
        transcript(last)[1..],
        [
            "user: hi",
            "assistant: ",
            "tool: look is done",
            "assistant: ",
            "tool: look is done"
        ]
    );
}

#[tokio::test]
async fn a_result_without_its_call_is_refused_and_the_messages_stay() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().calls("look", json!({})).says("Done.");
    let careless = history_fn(|mut messages: Messages, _| async move {
        messages.retain(|message| message.tool_calls.is_empty());
        Ok(messages)
    });
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .data_dir(folder.path())
        .history_processor(careless);
    let outcome = host.build().unwrap().agent().ask("s", "hi").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Done."));
    assert_eq!(
        transcript(&model.requests()[1])[2..],
        ["assistant: ", "tool: look is done"]
    );
    assert!(!read_journal(folder.path()).contains("history_edited"));
}

#[test]
fn messages_that_no_provider_accepts_are_named() {
    let call = |id: &str| Arc::new(calls([(id, "look", "{}")]).to_message());
    let result = |id: &str| Arc::new(ChatMessage::tool(id.into(), "ok"));
    let check = |messages: Messages, expected| assert_eq!(check_history(&messages).err(), expected);
    check(vec![user("hi"), call("1"), result("1")], None);
    check(vec![user("hi")], None);
    check(vec![], Some(HistoryError::Empty));
    check(
        vec![user("hi"), Arc::new(ChatMessage::assistant("ho"))],
        Some(HistoryError::EndsWithAnswer),
    );
    check(
        vec![call("1"), user("hi")],
        Some(HistoryError::CallWithoutResult("1".into())),
    );
    check(
        vec![user("hi"), call("1")],
        Some(HistoryError::CallWithoutResult("1".into())),
    );
    check(
        vec![result("1"), call("1")],
        Some(HistoryError::ResultWithoutCall("1".into())),
    );
    check(
        vec![call("1"), result("2"), result("1")],
        Some(HistoryError::ResultWithoutCall("2".into())),
    );
    check(
        vec![call("1"), result("1"), call("1"), result("1")],
        Some(HistoryError::RepeatedCall("1".into())),
    );
}

#[tokio::test(start_paused = true)]
async fn a_processor_that_fails_changes_nothing() {
    let limits = HookLimits::default().with_time_limit(Duration::from_secs(5));
    let model = ScriptedModel::new().says("Fine.");
    let host = host_of(&model)
        .policies(TurnPolicies::new().with_hook_limits(limits))
        .history_processor(history_fn(|_, _| async { Err("no database".into()) }))
        .history_processor(history_fn(|_, _| async { panic!("a bug") }))
        .history_processor(history_fn(|_, _| std::future::pending()));
    let outcome = host.build().unwrap().agent().ask("s", "hi").await.unwrap();
    assert_eq!(outcome.text, "Fine.");
    assert_eq!(transcript(&model.requests()[0])[1..], ["user: hi"]);
}

/// A model that decides by the conversation alone: a call, then the request that it read.
struct Mirror;

#[async_trait]
impl ChatClient for Mirror {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let read = transcript(&call.request).join(" | ");
        Ok(if read.contains("look") {
            ChatResponse::text(read)
        } else {
            calls([("1", "look", "{}")])
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// A processor that sums up calls and their results, and notes how many messages it was given.
#[derive(Debug)]
struct Summary(Notes);

#[async_trait]
impl HistoryProcessor for Summary {
    async fn process(&self, mut messages: Messages, _: &TurnView) -> Result<Messages, BoxError> {
        self.0.add(messages.len().to_string());
        if messages.iter().any(|message| message.role == Role::Tool) {
            messages.retain(|message| message.role != Role::Tool && message.tool_calls.is_empty());
            messages.push(user("You have called look."));
        }
        Ok(messages)
    }
}

fn summing_up(notes: &Notes) -> AgentHostBuilder {
    let host = AgentHost::in_memory().chat(Mirror).tool(noting_tool("look").0);
    let host = host.instructions("You are agent.");
    host.history_processor(Summary(notes.clone()))
}

#[tokio::test]
async fn after_a_crash_at_any_record_no_question_is_edited_twice_and_the_requests_are_the_same() {
    let request = TurnRequest::new("s", "m", "go");
    let all = Notes::default();
    let whole = summing_up(&all)
        .build()
        .unwrap()
        .agent()
        .run(request.clone())
        .await
        .unwrap();
    assert_eq!(
        whole.text,
        "system: You are agent. | user: go | user: You have called look."
    );
    assert_eq!(all.all(), ["2", "4"]);
    let journal = journal_of(summing_up(&Notes::default()), &request).await;
    for (prefix, folder) in prefixes(&journal) {
        let notes = Notes::default();
        let host = summing_up(&notes).data_dir(folder.path()).build().unwrap();
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(ending(&outcome), ending(&whole), "after\n{prefix}");
        assert!(
            !prefix.contains("history_edited") || notes.all().is_empty(),
            "after\n{prefix}"
        );
    }
}
