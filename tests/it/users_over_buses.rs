//! People who write to the agent over each bus, in this process and over the broker: replies,
//! reports, approvals.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{
    Bus, Delivery, Disposition, MessageEnvelope, MessagePublisher as _, MessageSubscriberExt as _, RequestClient,
    headers,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_core::turn::{ApprovalRequest, InMemoryTurnJournal, TurnProgress};
use rockbot_core::user::{AgentReply, UserMessage, UserProxy};
use rockbot_core::{CallContext, SystemClock, TraceContext};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::journal::{Around, Counting};
use crate::support::networks::{Network, PATIENCE, on_each_bus, until};
use crate::support::{Anything, noting_tool};

/// Time that a test gives to what must not come.
const QUIET: Duration = Duration::from_millis(200);

async fn serving(model: &ScriptedModel, network: &Network) -> AgentHostBuilder {
    AgentHost::builder("clerk")
        .chat(model.clone())
        .shared_bus(network.bus().await)
        .serve_users()
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

async fn proxy(network: &Network, id: &str) -> Arc<UserProxy> {
    Arc::new(UserProxy::new(network.bus().await, id).with_time_limit(PATIENCE))
}

fn says(content: &str) -> AgentReply {
    AgentReply::new("s", "clerk", content)
}

/// Returns a listener, and the reports that it receives.
fn reporting() -> (impl Fn(AgentReply) + Send + Sync + 'static, Arc<Mutex<Vec<AgentReply>>>) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let taken = reports.clone();
    (move |reply| taken.lock().unwrap().push(reply), reports)
}

/// The progress inside a report.
fn progress_in(report: &AgentReply) -> TurnProgress {
    serde_json::from_value(report.structured_data.clone().unwrap()).unwrap()
}

/// The question inside the latest report.
fn ask_in(reports: &Mutex<Vec<AgentReply>>) -> Option<ApprovalRequest> {
    match progress_in(reports.lock().unwrap().last()?) {
        TurnProgress::ApprovalNeeded(ask) => Some(ask),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_gets_its_reply() {
    on_each_bus(async |network: &Network| {
        let model = ScriptedModel::new().says("Hello.");
        let host = started(serving(&model, network).await).await;
        let reply = proxy(network, "test").await.send("s", "Hi!").await.unwrap();
        assert_eq!(reply, says("Hello."));
        host.shutdown(PATIENCE).await;
    })
    .await;
}

/// The reply and the reports before it belong to the trace of the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_and_reports_are_in_the_trace_of_their_message() {
    on_each_bus(async |network: &Network| {
        let look = tool("look", |_: Anything, cx: CallContext| async move {
            cx.progress().report("I look.");
            "seen"
        });
        let model = ScriptedModel::new().calls("look", json!({})).says("Hello.");
        let host = serving(&model, network).await.tool(look.description("Looks."));
        let host = started(host).await;
        let bus = network.bus().await;
        let traces = Arc::new(Mutex::new(Vec::new()));
        let taken = traces.clone();
        let listener = move |delivery: Delivery| {
            let reply: AgentReply = delivery.envelope.payload().unwrap();
            let trace = headers::trace(&delivery.envelope.headers).map(|trace| trace.trace_id());
            taken.lock().unwrap().push((reply.is_final, trace));
            async { Disposition::Ack }
        };
        let _listening = bus.on("user.response.desk", "desk", listener).await.unwrap();
        let trace = TraceContext::begin();
        let mut message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
        headers::set_trace(&trace, &mut message.headers);
        let message = message.with_reply_to("user.response.desk");
        bus.publish("user.message", Arc::new(message)).await.unwrap();
        until("the reply is there", async || {
            traces.lock().unwrap().iter().any(|(is_final, _)| *is_final)
        })
        .await;
        let traces = traces.lock().unwrap().clone();
        let expected = Some(trace.trace_id());
        assert_eq!(traces, [(false, expected), (false, expected), (true, expected)]);
        host.shutdown(PATIENCE).await;
    })
    .await;
}

/// The same message, sent again by a program that saw no reply, is the same turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_sent_again_gets_the_same_reply() {
    on_each_bus(async |network: &Network| {
        let model = ScriptedModel::new().says("Hello.");
        let host = started(serving(&model, network).await).await;
        let client = RequestClient::new(network.bus().await, "desk");
        let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap().with_id("1");
        for _ in 0..3 {
            let reply = client.call("user.message", message.clone()).await.unwrap();
            assert_eq!(reply.payload::<AgentReply>().unwrap(), says("Hello."));
        }
        assert_eq!((model.requests().len(), client.stray_replies()), (1, 0));
        host.shutdown(PATIENCE).await;
    })
    .await;
}

/// Holds the end of a run back until it is let go.
#[derive(Debug, Clone, Default)]
struct HeldEnd(Arc<Notify>);

#[async_trait]
impl Around for HeldEnd {
    async fn before_end(&self) {
        self.0.notified().await;
    }
}

/// The reply is out before the journal has the end of the turn: the message that comes again
/// meanwhile gets it, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_again_before_its_end_is_recorded_gets_the_same_reply() {
    on_each_bus(async |network: &Network| {
        let model = ScriptedModel::new().says("Hello.");
        let end = HeldEnd::default();
        let journal = InMemoryTurnJournal::new(Arc::new(SystemClock));
        let stores = Stores::new().with_journal(Counting::new(journal, end.clone()));
        let host = started(serving(&model, network).await.stores(stores)).await;
        let client = RequestClient::new(network.bus().await, "desk").with_time_limit(PATIENCE);
        let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap().with_id("1");
        for _ in 0..3 {
            let reply = client.call("user.message", message.clone()).await.unwrap();
            assert_eq!(reply.payload::<AgentReply>().unwrap(), says("Hello."));
        }
        end.0.notify_one();
        host.shutdown(PATIENCE).await;
        assert_eq!((model.requests().len(), client.stray_replies()), (1, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_come_before_the_reply_and_programs_can_read_them() {
    on_each_bus(async |network: &Network| {
        for _ in 0..5 {
            let model = ScriptedModel::new().calls("look", json!({"n": 7})).says("Seen.");
            let telling = tool("look", |_: Anything, cx: CallContext| async move {
                cx.progress().report("I look.");
                "nothing"
            });
            let host = serving(&model, network)
                .await
                .tool(telling.description("Looks.").pure());
            let host = started(host).await;
            let proxy = proxy(network, "test").await;
            let (report, reports) = reporting();
            let reply = proxy.send_message(&UserMessage::new("s", "Hi!"), report).await.unwrap();
            assert_eq!(reply, says("Seen."));
            host.shutdown(PATIENCE).await;
            assert_eq!(proxy.stray_replies(), 0, "nothing comes after the reply");
            let reports = reports.lock().unwrap();
            let words: Vec<_> = reports.iter().map(|report| report.content.text()).collect();
            assert_eq!(words, ["Using look …", "look: I look."]);
            let TurnProgress::ToolStarted { call, .. } = progress_in(&reports[0]) else {
                panic!("got {:?}", progress_in(&reports[0]))
            };
            let reported = TurnProgress::ToolProgress {
                call,
                tool: "look".into(),
                text: "I look.".to_owned(),
            };
            assert_eq!(progress_in(&reports[1]), reported);
            assert_eq!(reports[0].content_type.as_deref(), Some(AgentReply::PROGRESS));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_waits_for_a_person_goes_on_when_the_person_decides() {
    on_each_bus(async |network: &Network| {
        let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
        let (pay, paid) = noting_tool("pay");
        let host = started(serving(&model, network).await.tool(pay.needs_approval())).await;
        let proxy = proxy(network, "test").await;
        let (report, reports) = reporting();
        let asking = proxy.clone();
        let waiting = tokio::spawn(async move { asking.send_message(&UserMessage::new("s", "Pay!"), report).await });
        until("the question comes", async || ask_in(&reports).is_some()).await;
        let ask = ask_in(&reports).unwrap();
        assert_eq!((ask.tool.as_str(), ask.arguments.as_str()), ("pay", r#"{"n":7}"#));
        let mut wrong = ask.approve();
        wrong.call = "another".into();
        proxy.decide(&wrong).await.unwrap();
        tokio::time::sleep(QUIET).await;
        assert!(paid.all().is_empty());
        proxy.decide(&ask.approve()).await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), says("Paid."));
        proxy.decide(&ask.approve()).await.unwrap();
        tokio::time::sleep(QUIET).await;
        assert_eq!((paid.all(), proxy.stray_replies()), (vec!["pay 7".to_owned()], 0));
        let ended = timeout(PATIENCE, host.shutdown(PATIENCE * 10)).await;
        ended.expect("a host with decided questions ends at once");
    })
    .await;
}

/// A message under a reply topic that nothing listens to is answered and acknowledged all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_without_a_receiver_blocks_nothing() {
    on_each_bus(async |network: &Network| {
        let model = ScriptedModel::new().says("To nothing.").says("Hello.");
        let host = started(serving(&model, network).await).await;
        let bus: Arc<dyn Bus> = network.bus().await;
        let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
        let message = message.with_source("gone").with_reply_to("user.response.gone");
        bus.publish("user.message", Arc::new(message)).await.unwrap();
        until("the first message is answered", async || model.requests().len() == 1).await;
        let reply = proxy(network, "test").await.send("s", "Hi!").await.unwrap();
        assert_eq!(reply, says("Hello."));
        host.shutdown(PATIENCE).await;
    })
    .await;
}
