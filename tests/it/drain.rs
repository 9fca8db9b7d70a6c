//! The end of a host while its turns run: within the deadline they end with their answers, else
//! they are resumed later.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatDelta, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::messaging::{Bus, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt};
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{ToolError, tool};
use rockbot_core::turn::{TurnProgress, TurnRequest, TurnStatus};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::support::{Notes, collect, ending, host_of, results, settle};

const SECOND: Duration = Duration::from_secs(1);

/// Time between two words of [`Writer`].
const PAUSE: Duration = Duration::from_millis(100);

/// A model that writes this many words, one after the other, and notes each question.
struct Writer(usize, Notes);

#[async_trait]
impl ChatClient for Writer {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let question = call.request.messages.last().map(|message| message.text().into_owned());
        self.1.add(question.unwrap_or_default());
        for _ in 0..self.0 {
            sleep(PAUSE).await;
            if let Some(deltas) = &call.deltas {
                deltas.send(ChatDelta::Text("word "));
            }
        }
        Ok(ChatResponse::text("word ".repeat(self.0)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn writing(words: usize) -> (AgentHostBuilder, Notes) {
    let asked = Notes::default();
    let host = AgentHost::builder("clerk").chat(Writer(words, asked.clone()));
    (host, asked)
}

fn in_folder(folder: &Path, model: &ScriptedModel) -> AgentHost {
    AgentHost::builder("clerk")
        .chat(model.clone())
        .data_dir(folder)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_streaming_ends_before_the_host_does() {
    let host = writing(20).0.build().unwrap();
    let streaming = tokio::spawn(collect(host.agent().stream("s", "Write!")));
    sleep(3 * PAUSE).await;

    let began = Instant::now();
    host.shutdown(10 * SECOND).await;
    assert_eq!(began.elapsed(), 17 * PAUSE, "it waits for the answer, and no longer");
    let mut reports = streaming.await.unwrap();
    let Some(TurnProgress::Final(outcome)) = reports.pop() else {
        panic!("got {reports:?}")
    };
    let whole = "word ".repeat(20);
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, &*whole));
    let pieces = reports.into_iter().map(|report| match report {
        TurnProgress::Delta(piece) => piece,
        other => panic!("got {other:?}"),
    });
    assert_eq!(pieces.collect::<String>(), whole, "nothing was cut");
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_with_tools_and_questions_while_the_host_stops() {
    let model = ScriptedModel::new().calls("work", json!({})).says("It is done.");
    let (work, mut handle) = mock_tool("work");
    let host = host_of(&model).tool(work).build().unwrap();
    let asking = tokio::spawn(host.agent().ask("s", "Work!").into_future());
    let call = handle.next_call().await;
    let stopping = tokio::spawn(async move { host.shutdown(10 * SECOND).await });
    settle().await;
    call.respond("worked");
    assert_eq!(asking.await.unwrap().unwrap().text, "It is done.");
    stopping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_gives_itself_a_task_does_it_while_the_host_stops() {
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .calls("helper", json!({"task": "Help!"}))
        .says("from below")
        .says("It is done.");
    let (work, mut handle) = mock_tool("work");
    let host = host_of(&model).tool(work).build().unwrap();
    let helper = host.agent().as_tool("helper", "Does a task.");
    host.add_tool(helper).unwrap();
    let asking = tokio::spawn(host.agent().ask("s", "Work!").into_future());
    let call = handle.next_call().await;
    let stopping = tokio::spawn(async move { host.shutdown(10 * SECOND).await });
    settle().await;
    call.respond("worked");
    assert_eq!(asking.await.unwrap().unwrap().text, "It is done.");
    let below = results(&model.requests()[3]);
    assert_eq!(below, ["call_1: worked", "call_2: from below"]);
    stopping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_longer_is_left_to_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let host = writing(1_000).0.data_dir(folder.path()).build().unwrap();
    let agent = host.agent().clone();
    let request = TurnRequest::new("s", "m1", "Write!");
    let asked = request.clone();
    let asking = tokio::spawn(async move { agent.run(asked).await });
    sleep(3 * PAUSE).await;

    let began = Instant::now();
    host.shutdown(10 * SECOND).await;
    let took = began.elapsed();
    assert!(5 * SECOND <= took && took <= 10 * SECOND, "{took:?}");
    assert!(matches!(asking.await.unwrap(), Err(TurnError::Halted)));
    drop(host);
    let records = std::fs::read_to_string(folder.path().join("turns/turns-00000001.jsonl")).unwrap();
    assert_eq!(
        records.matches(r#""event":"halted""#).count(),
        1,
        "it stopped in order: {records}"
    );

    let host = in_folder(folder.path(), &ScriptedModel::new().says("At last."));
    assert_eq!(host.resume().await.unwrap().running, [request.turn_id()]);
    assert_eq!(host.agent().outcome(&request.turn_id()).await.unwrap().text, "At last.");
}

#[tokio::test(start_paused = true)]
async fn no_turn_begins_while_another_one_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (host, asked) = writing(20);
    let host = host.data_dir(folder.path()).build().unwrap();
    let agent = host.agent().clone();
    let running = tokio::spawn(agent.ask("s", "first").into_future());
    settle().await;
    let queued = TurnRequest::new("s", "m2", "second");
    let waiting = tokio::spawn({
        let agent = agent.clone();
        let queued = queued.clone();
        async move { agent.run(queued).await }
    });
    settle().await;
    let stopping = tokio::spawn(async move { host.shutdown(10 * SECOND).await });
    settle().await;
    let new = agent.ask("t", "third").await;
    assert!(matches!(new, Err(TurnError::Halted)), "got {new:?}");
    assert!(matches!(waiting.await.unwrap(), Err(TurnError::Halted)));
    assert_eq!(running.await.unwrap().unwrap().status, TurnStatus::Answered);
    stopping.await.unwrap();
    assert_eq!(asked.all(), ["first"]);
    drop(agent);

    let host = in_folder(folder.path(), &ScriptedModel::new().says("Now."));
    assert_eq!(host.resume().await.unwrap().running, [queued.turn_id()]);
    assert_eq!(host.agent().outcome(&queued.turn_id()).await.unwrap().text, "Now.");
}

#[tokio::test(start_paused = true)]
async fn a_user_on_the_bus_gets_the_answer_of_a_host_that_stops() {
    let bus = InProcessBus::new();
    let replies = Notes::default();
    let notes = replies.clone();
    let listener = move |delivery: Delivery| {
        let reply: AgentReply = delivery.envelope.payload().unwrap();
        notes.add(reply.content.to_string());
        async { Disposition::Ack }
    };
    let _listening = bus.on("desk", "desk", listener).await.unwrap();
    let shared: Arc<dyn Bus> = Arc::new(bus.clone());
    let host = writing(3).0.shared_bus(shared).serve_users().build().unwrap();
    host.start().await.unwrap();
    let message = MessageEnvelope::of(&UserMessage::new("s", "Write!")).unwrap();
    bus.publish("user.message", Arc::new(message.with_reply_to("desk")))
        .await
        .unwrap();
    sleep(PAUSE).await;
    host.shutdown(10 * SECOND).await;
    settle().await;
    assert_eq!(replies.all(), ["word word word "]);
}

/// A line that is cut when its host stops.
#[derive(Debug, Clone, Default)]
struct Line(Arc<Notify>);

#[async_trait]
impl Subsystem for Line {
    fn name(&self) -> &str {
        "line"
    }

    fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(self)
    }
}

#[async_trait]
impl Running for Line {
    async fn stop(&self) {
        self.0.notify_one();
    }
}

/// On the one thread of this test nothing runs between the abort of the turns and the stop of the
/// subsystem, unless the host waits for the turns.
#[tokio::test]
async fn a_call_that_fails_because_the_host_stops_has_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let called = Notes::default();
    let line = Line::default();
    let noted = called.clone();
    let cut = line.0.clone();
    let call = tool("pay", move |amount: Value| {
        noted.add(amount.to_string());
        let cut = cut.clone();
        async move {
            cut.notified().await;
            Err::<String, _>(ToolError::execution_failed("the line was cut"))
        }
    });
    let call = call.description("Pays.");
    let paying = ScriptedModel::new().calls("pay", json!({"amount": 1}));
    let host = AgentHost::builder("clerk").chat(paying).data_dir(folder.path());
    let host = host.tool(call).add(line).build().unwrap();
    host.start().await.unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "Pay.").await });
    while called.all().is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    host.shutdown(Duration::ZERO).await;
    drop(host);
    assert!(matches!(asking.await.unwrap(), Err(TurnError::Halted)));

    let model = ScriptedModel::new().says("Unclear.");
    let host = AgentHost::builder("clerk").chat(model.clone()).data_dir(folder.path());
    let host = host.tool(mock_tool("pay").0).build().unwrap();
    let resumed = host.start().await.unwrap();
    let outcome = host.agent().outcome(&resumed.running[0]).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Unclear."));
    let told = results(&model.requests()[0]);
    assert!(told[0].contains("may or may not"), "{told:?}");
}
