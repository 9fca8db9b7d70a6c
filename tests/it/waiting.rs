//! Waits of a turn for a model: the user reads the reason and the end of each, and may stop.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::chat::{ChatError, ChatErrorKind};
use rockbot_core::context::WaitReason;
use rockbot_core::messaging::{Bus, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt};
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::turn::{TurnProgress, TurnStatus};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnStream};
use rockbot_llm::{Meter, ModelGateway, PermitLimits};
use tokio::time::{Instant, sleep};

use crate::support::{Notes, collect, ending, settle};

const SECOND: Duration = Duration::from_secs(1);

/// The time of the hosts' clock, which stands still.
const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// A host whose model is behind a gateway with one permit, for which calls wait a minute.
fn behind_a_gateway(model: ScriptedModel) -> AgentHostBuilder {
    let limits = PermitLimits::serialized().with_max_wait(60 * SECOND);
    let gateway = ModelGateway::builder(model)
        .default_layers(limits, Meter::new())
        .build();
    AgentHost::builder("clerk").chat(gateway).clock(ManualClock::new(NOW))
}

fn busy(retry_after: Duration) -> ChatError {
    ChatError::new(ChatErrorKind::RateLimited, "slow down").with_retry_after(retry_after)
}

fn waiting(left: Duration, why: WaitReason) -> TurnProgress {
    let until = Some(NOW.after(left));
    TurnProgress::Waiting { until, why }
}

/// The next report of a turn.
async fn next(stream: &mut TurnStream) -> TurnProgress {
    stream.next().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_busy_model_is_a_wait_until_it_is_asked_again() {
    let model = ScriptedModel::new().fails_with(busy(30 * SECOND)).says("Hello.");
    let host = behind_a_gateway(model).build().unwrap();
    let mut reports = collect(host.agent().stream("s", "Hi!")).await;
    let Some(TurnProgress::Final(outcome)) = reports.pop() else {
        panic!("got {reports:?}")
    };
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Hello."));
    let expected = [
        waiting(30 * SECOND, WaitReason::ModelBusy),
        TurnProgress::Delta("Hello.".to_owned()),
    ];
    assert_eq!(reports, expected);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_once_when_the_turn_is_cancelled() {
    let model = ScriptedModel::new().fails_with(busy(30 * SECOND)).says("Hello.");
    let host = behind_a_gateway(model.clone()).build().unwrap();
    let agent = host.agent();
    let request = agent.request("s", "Hi!");
    let turn = request.turn_id();
    let mut stream = agent.stream_turn(request);
    assert_eq!(next(&mut stream).await, waiting(30 * SECOND, WaitReason::ModelBusy));
    let began = Instant::now();
    agent.cancel(&turn).await.unwrap();
    let TurnProgress::Final(outcome) = next(&mut stream).await else {
        panic!("the turn has ended")
    };
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(began.elapsed(), Duration::ZERO);
    sleep(60 * SECOND).await;
    assert_eq!(model.requests().len(), 1, "nothing is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_is_not_worth_a_report() {
    let model = ScriptedModel::new().fails_with(busy(SECOND / 2)).says("Hello.");
    let host = behind_a_gateway(model).build().unwrap();
    let reports = collect(host.agent().stream("s", "Hi!")).await;
    assert_eq!(reports[0], TurnProgress::Delta("Hello.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_a_wait_of_its_own_kind() {
    let lost = ChatError::new(ChatErrorKind::Unreachable, "cut").with_retry_after(5 * SECOND);
    let model = ScriptedModel::new().fails_with(lost).says("Hello.");
    let host = behind_a_gateway(model).build().unwrap();
    let reports = collect(host.agent().stream("s", "Hi!")).await;
    assert_eq!(reports[0], waiting(5 * SECOND, WaitReason::ModelFailed));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_permit_is_a_wait_once_it_has_lasted_a_second() {
    let host = behind_a_gateway(ScriptedModel::new().hangs()).build().unwrap();
    let running = tokio::spawn(host.agent().ask("a", "Hi!").into_future());
    settle().await;
    let began = Instant::now();
    let mut stream = host.agent().stream("b", "Hi!");
    assert_eq!(next(&mut stream).await, waiting(59 * SECOND, WaitReason::Permit));
    assert_eq!(began.elapsed(), SECOND);
    let TurnProgress::Final(outcome) = next(&mut stream).await else {
        panic!("the turn has ended")
    };
    assert_eq!(began.elapsed(), 60 * SECOND, "the whole wait is as long as before");
    assert!(
        outcome.text.contains("no model was free for this call within 60s"),
        "{}",
        outcome.text
    );
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_an_agent_below_is_a_report_of_the_call() {
    let below = ScriptedModel::new().fails_with(busy(30 * SECOND)).says("On shelf 7.");
    let below = behind_a_gateway(below).build().unwrap();
    let tool = below.agent().as_tool("find_book", "Finds a book.");
    let model = ScriptedModel::new()
        .calls("find_book", serde_json::json!({"task": "Emma?"}))
        .says("On shelf 7.");
    let host = behind_a_gateway(model).tool(tool).build().unwrap();
    let reports = collect(host.agent().stream("s", "Where is Emma?")).await;
    assert_eq!(reports[1], waiting(30 * SECOND, WaitReason::ModelBusy), "{reports:?}");
}

#[tokio::test(start_paused = true)]
async fn a_user_on_the_bus_is_told_of_a_wait() {
    let bus = InProcessBus::new();
    let told = Notes::default();
    let notes = told.clone();
    let listener = move |delivery: Delivery| {
        let reply: AgentReply = delivery.envelope.payload().unwrap();
        notes.add(reply.content.to_string());
        if let Some(report) = reply.structured_data {
            let report: TurnProgress = serde_json::from_value(report).unwrap();
            assert_eq!(report, waiting(30 * SECOND, WaitReason::ModelBusy));
        }
        async { Disposition::Ack }
    };
    let _listening = bus.on("desk", "desk", listener).await.unwrap();
    let model = ScriptedModel::new().fails_with(busy(30 * SECOND)).says("Hello.");
    let shared: Arc<dyn Bus> = Arc::new(bus.clone());
    let host = behind_a_gateway(model)
        .shared_bus(shared)
        .serve_users()
        .build()
        .unwrap();
    host.start().await.unwrap();
    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
    let message = message.with_reply_to("desk");
    bus.publish("user.message", Arc::new(message)).await.unwrap();
    sleep(31 * SECOND).await;
    assert_eq!(told.all(), ["the model is busy: asking again in 30 s", "Hello."]);
}
