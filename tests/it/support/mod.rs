//! Helpers that the integration tests share.

pub(crate) mod callsites;
pub(crate) mod dialects;
pub(crate) mod files;
pub(crate) mod journal;
pub(crate) mod kill;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod model_server;
pub(crate) mod networks;
pub(crate) mod spans;
pub(crate) mod weather;

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use rockbot_core::chat::{ChatRequest, ChatResponse, ContextReason, Role, ToolCall};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Tool, ToolInvokeRequest, tool};
use rockbot_core::turn::{TurnOutcome, TurnProgress, TurnStatus};
use rockbot_host::tool::ToolLimits;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnError, TurnPolicies, TurnStream};

/// The policies of a host that endorses every call, since its test is about something else.
pub(crate) fn unguarded() -> TurnPolicies {
    TurnPolicies::new().with_tool_limits(ToolLimits::default().with_guards_effects(false))
}

/// A host in memory that asks `model`, and endorses every call.
pub(crate) fn host_of(model: &ScriptedModel) -> AgentHostBuilder {
    AgentHost::in_memory().chat(model.clone()).policies(unguarded())
}

/// Lets every other task run until it waits for something.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// An answer that calls tools under these ids.
pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> ChatResponse {
    ChatResponse::calls(
        calls
            .into_iter()
            .map(|(id, tool, arguments)| ToolCall::new(id, tool, arguments)),
    )
}

/// A request to a tool.
pub(crate) fn request(call: &str, tool: &str, arguments: &str) -> ToolInvokeRequest {
    ToolInvokeRequest::new(call, tool, arguments).with_session_id("session")
}

/// The messages of a request as `role: text` lines.
pub(crate) fn transcript(request: &ChatRequest) -> Vec<String> {
    let line = |role: Role, text: &str| format!("{}: {text}", format!("{role:?}").to_lowercase());
    request
        .messages
        .iter()
        .map(|message| line(message.role, &message.text()))
        .collect()
}

/// Returns the results of this turn that the model read, as `id: text` lines.
pub(crate) fn results(request: &ChatRequest) -> Vec<String> {
    let result = |message: &Arc<rockbot_core::chat::ChatMessage>| {
        let id = message.tool_call_id.clone()?;
        Some(format!("{id}: {}", message.text()))
    };
    let messages = request.messages.iter();
    let own = messages.filter(|message| message.why() != ContextReason::History);
    own.filter_map(result).collect()
}

/// The end of a turn that has no answer.
#[track_caller]
pub(crate) fn unanswered(ended: Result<TurnOutcome, TurnError>) -> TurnOutcome {
    match ended {
        Err(TurnError::Unanswered(outcome)) => *outcome,
        other => panic!("the turn should have ended without an answer, got {other:?}"),
    }
}

/// Everything that a stream reports, to its end.
pub(crate) async fn collect(stream: TurnStream) -> Vec<TurnProgress> {
    stream.map(|item| item.expect("the stream ends well")).collect().await
}

/// Drains a stream, and returns its end.
pub(crate) async fn end_of(stream: TurnStream) -> TurnOutcome {
    let reports = collect(stream).await;
    let finals = reports.iter().filter(|report| matches!(report, TurnProgress::Final(_)));
    assert_eq!(finals.count(), 1, "exactly one final reply");
    match reports.into_iter().next_back() {
        Some(TurnProgress::Final(outcome)) => outcome,
        other => panic!("the final reply comes last, got {other:?}"),
    }
}

/// Status and text of an outcome.
pub(crate) fn ending(outcome: &TurnOutcome) -> (&TurnStatus, &str) {
    (&outcome.status, &outcome.text)
}

/// Any arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Anything {
    #[serde(default)]
    pub(crate) n: i64,
}

/// A pure tool that notes each call.
pub(crate) fn noting_tool(name: &'static str) -> (Tool, Notes) {
    let notes = Notes::default();
    let taken = notes.clone();
    let noting = tool(name, move |Anything { n }: Anything| {
        taken.add(format!("{name} {n}"));
        async move { format!("{name} is done") }
    });
    let noting = noting.description("Notes that it was called.").pure();
    (noting.trusted_effect("a test"), notes)
}

/// A list that copies share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
