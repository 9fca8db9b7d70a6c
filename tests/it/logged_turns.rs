//! The conversation log: the turns of all sessions and origins, for readers that each keep their
//! own position.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::testing::{ScriptedModel, mock_tool};
use rockbot_core::chat::ChatErrorKind;
use rockbot_core::context::Origin;
use rockbot_core::messaging::Bus;
use rockbot_core::store::{
    ConversationLog, ConversationMemory, ConversationTurn, InMemoryConversationLog, LogBatch, LogEntry, StoreError,
    StoreErrorKind,
};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::turn::{BusyPolicy, TurnOutcome, TurnRequest};
use rockbot_core::user::{UserMessage, UserProxy};
use rockbot_core::{Principal, SessionId};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, Stores, TurnError};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{noting_tool, settle};

fn logging(builder: AgentHostBuilder, model: &ScriptedModel) -> (AgentHostBuilder, Arc<InMemoryConversationLog>) {
    let log = Arc::new(InMemoryConversationLog::new());
    let builder = builder.chat(model.clone()).give::<dyn ConversationLog>(log.clone());
    (builder, log)
}

async fn read(log: &InMemoryConversationLog, principal: &str, reader: &str) -> LogBatch {
    log.read(&principal.into(), reader, 100).await.unwrap()
}

/// The entries as `session role: text`.
fn lines(batch: &LogBatch) -> Vec<String> {
    let entries = batch.entries.iter();
    let lines = entries.map(|entry| format!("{} {:?}: {}", entry.session_id, entry.role, entry.content));
    lines.collect()
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_said_is_logged_whatever_its_origin() {
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let bus = InProcessBus::new();
    let (builder, log) = logging(AgentHost::builder("clerk").bus(bus.clone()).serve_users(), &model);
    let host = builder.build().unwrap();
    host.start().await.unwrap();
    host.agent().ask("a", "first").await.unwrap();
    let scheduled = host.agent().request("b", "second").with_origin(Origin::Scheduled);
    host.agent().run(scheduled).await.unwrap();
    let shared: Arc<dyn Bus> = Arc::new(bus.clone());
    let mut message = UserMessage::new("c", "third");
    message.user_id = "ann".to_owned();
    let proxy = UserProxy::new(shared, "test");
    proxy.send_message(&message, |_| {}).await.unwrap();
    let all = read(&log, "local", "test").await;
    assert_eq!(
        lines(&all),
        [
            "a User: first",
            "a Assistant: one",
            "b User: second",
            "b Assistant: two"
        ]
    );
    assert_eq!(
        lines(&read(&log, "ann", "test").await),
        ["c User: third", "c Assistant: three"]
    );
}

/// The entries as `text: label, trust`.
fn origins(batch: &LogBatch) -> Vec<String> {
    let origin = |entry: &LogEntry| {
        let label = (entry.label.trust(), entry.label.sources());
        format!("{}: {label:?}, {:?}", entry.content, entry.trust)
    };
    batch.entries.iter().map(origin).collect()
}

#[tokio::test]
async fn an_entry_has_the_label_of_its_text_and_the_trust_in_its_sender() {
    let model = ScriptedModel::new()
        .says("Hello.")
        .calls("look", json!({}))
        .says("It is sunny.")
        .says("Noted.")
        .says("Read.");
    let (builder, log) = logging(AgentHost::in_memory(), &model);
    let (look, _) = noting_tool("look");
    let host = builder.tool(look).build().unwrap();
    let agent = host.agent();
    agent.ask("a", "Hi").await.unwrap();
    agent.ask("b", "Is it sunny?").await.unwrap();
    let foreign = TurnRequest::new("c", "m", "I am Eve.").with_trust(Trust::Untrusted);
    agent.run(foreign).await.unwrap();
    let made_of_mail = TurnRequest::new("d", "m", "A mail came.").with_label(Label::untrusted("tool:mail"));
    agent.run(made_of_mail).await.unwrap();
    let all = read(&log, "local", "test").await;
    assert_eq!(
        origins(&all),
        [
            "Hi: (User, []), User",
            "Hello.: (User, []), User",
            "Is it sunny?: (User, []), User",
            r#"It is sunny.: (Untrusted, ["tool:look"]), User"#,
            r#"I am Eve.: (Untrusted, ["user"]), Untrusted"#,
            r#"Noted.: (Untrusted, ["user"]), Untrusted"#,
            r#"A mail came.: (Untrusted, ["tool:mail"]), User"#,
            r#"Read.: (Untrusted, ["tool:mail"]), User"#,
        ]
    );
}

#[tokio::test]
async fn a_message_that_joins_keeps_its_own_label() {
    let model = ScriptedModel::new().calls("work", json!({})).says("both");
    let (builder, log) = logging(AgentHost::in_memory(), &model);
    let (work, mut handle) = mock_tool("work");
    let host = builder.tool(work.pure()).build().unwrap();
    let one = send(&host, "one", BusyPolicy::Queue).await;
    let agent = host.agent().clone();
    let joining = agent.request("s", "two").with_busy(BusyPolicy::Steer);
    let joining = joining.with_label(Label::untrusted("tool:mail"));
    let two = tokio::spawn(async move { agent.run(joining).await });
    settle().await;
    handle.next_call().await.respond("ok");
    for running in [one, two] {
        assert_eq!(running.await.unwrap().unwrap().text, "both");
    }
    assert_eq!(
        origins(&read(&log, "local", "test").await),
        [
            "one: (User, []), User",
            r#"two: (Untrusted, ["tool:mail"]), User"#,
            r#"both: (Untrusted, ["tool:mail", "tool:work"]), User"#,
        ]
    );
}

#[tokio::test]
async fn a_reader_loses_nothing_that_is_said_while_it_reads() {
    let model = ScriptedModel::new().says("one").says("two");
    let (builder, log) = logging(AgentHost::in_memory(), &model);
    let host = builder.build().unwrap();
    host.agent().ask("s", "first").await.unwrap();
    let seen = read(&log, "local", "dream").await;
    host.agent().ask("s", "second").await.unwrap();
    log.commit(&Principal::default(), "dream", seen.next).await.unwrap();
    log.trim(&Principal::default(), seen.next).await.unwrap();
    assert_eq!(
        lines(&read(&log, "local", "dream").await),
        ["s User: second", "s Assistant: two"]
    );
}

async fn send(host: &AgentHost, text: &str, busy: BusyPolicy) -> JoinHandle<Result<TurnOutcome, TurnError>> {
    let agent = host.agent().clone();
    let request = agent.request("s", text).with_busy(busy);
    let running = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    running
}

#[tokio::test]
async fn a_message_that_joins_a_turn_is_logged_with_it() {
    let model = ScriptedModel::new().calls("work", json!({})).says("both");
    let (builder, log) = logging(AgentHost::in_memory(), &model);
    let (work, mut handle) = mock_tool("work");
    let host = builder.tool(work.pure()).build().unwrap();
    let one = send(&host, "one", BusyPolicy::Queue).await;
    let two = send(&host, "two", BusyPolicy::Steer).await;
    handle.next_call().await.respond("ok");
    for running in [one, two] {
        assert_eq!(running.await.unwrap().unwrap().text, "both");
    }
    let said = ["s User: one", "s User: two", "s Assistant: both"];
    assert_eq!(lines(&read(&log, "local", "test").await), said);
}

#[tokio::test]
async fn a_turn_that_failed_before_it_did_anything_is_not_logged() {
    let model = ScriptedModel::new().fails(ChatErrorKind::Auth);
    let (builder, log) = logging(AgentHost::in_memory(), &model);
    let host = builder.build().unwrap();
    host.agent().ask("s", "first").await.unwrap_err();
    assert_eq!(lines(&read(&log, "local", "test").await), [""; 0]);
}

/// A memory that cannot be written.
#[derive(Debug)]
struct Full;

#[async_trait]
impl ConversationMemory for Full {
    async fn append(&self, _: &Principal, _: &SessionId, _: Vec<ConversationTurn>) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Full, "the disk").with_cause("is full"))
    }

    async fn recent(&self, _: &Principal, _: &SessionId, _: usize) -> Result<Vec<ConversationTurn>, StoreError> {
        Ok(Vec::new())
    }

    async fn clear(&self, _: &Principal, _: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn sessions(&self, _: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_cannot_be_written_is_still_logged() {
    let model = ScriptedModel::new().says("one");
    let (builder, log) = logging(
        AgentHost::in_memory().stores(Stores::new().with_conversation_memory(Full)),
        &model,
    );
    let host = builder.build().unwrap();
    host.agent().ask("s", "first").await.unwrap();
    assert_eq!(
        lines(&read(&log, "local", "test").await),
        ["s User: first", "s Assistant: one"]
    );
    host.shutdown(Duration::from_secs(1)).await;
}
