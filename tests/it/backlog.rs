//! Messages to a host that has enough of them: callers are refused, and a bus keeps what is not
//! accepted.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{
    DeadLetters, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt,
};
use rockbot_core::testing::{MockToolHandle, ScriptedModel, mock_tool};
use rockbot_core::turn::{Budget, BusyPolicy, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{Agent, AgentHost, AgentHostBuilder, BacklogLimits, Busy, TurnError, TurnPolicies};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::{host_of, settle};

/// Longer than a message waits anywhere.
const LONG: Duration = Duration::from_secs(3600);

type Running = JoinHandle<Result<TurnOutcome, TurnError>>;

/// Sends a message, named after its text, and lets it get as far as it can.
async fn send(agent: &Agent, session: &str, text: &str, busy: BusyPolicy) -> Running {
    let mut request = TurnRequest::new(session, text, text);
    (request.busy, request.principal) = (busy, agent.principal().clone());
    let agent = agent.clone();
    let running = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    running
}

async fn refusal(running: Running) -> Busy {
    match running.await.unwrap() {
        Err(TurnError::Busy(busy)) => busy,
        other => panic!("not refused: {other:?}"),
    }
}

/// A host within `limits` whose model calls a tool first, which the handle answers.
fn limited(model: &ScriptedModel, limits: BacklogLimits) -> (AgentHostBuilder, MockToolHandle) {
    let (work, handle) = mock_tool("work");
    let policies = TurnPolicies::new().with_backlog(limits);
    (host_of(model).tool(work.pure()).policies(policies), handle)
}

fn working() -> ScriptedModel {
    ScriptedModel::new().calls("work", json!({}))
}

#[tokio::test]
async fn giving_up_thousands_of_queued_messages_leaves_the_session_usable() {
    let many = 5_000;
    let model = working().says("1").says("last");
    let limits = BacklogLimits::new()
        .with_max_messages(2 * many)
        .with_max_principal_messages(2 * many)
        .with_max_session_messages(2 * many);
    let (host, mut handle) = limited(&model, limits);
    let host = host.build().unwrap();
    let first = send(host.agent(), "s", "one", BusyPolicy::Queue).await;
    let queued: Vec<_> = (0..many)
        .map(|number| {
            let agent = host.agent().clone();
            let request = TurnRequest::new("s", number.to_string(), "more");
            tokio::spawn(async move { agent.run(request).await })
        })
        .collect();
    settle().await;
    for running in &queued {
        running.abort();
    }
    for running in queued {
        assert!(running.await.unwrap_err().is_cancelled());
    }
    settle().await;
    handle.next_call().await.respond("ok");
    assert_eq!(first.await.unwrap().unwrap().text, "1");
    let last = send(host.agent(), "s", "last", BusyPolicy::Queue).await;
    assert_eq!(last.await.unwrap().unwrap().text, "last");
}

#[tokio::test]
async fn a_session_keeps_a_bounded_number_of_messages_waiting() {
    let model = working().says("1").says("2").says("3").says("4");
    let (host, mut handle) = limited(&model, BacklogLimits::new().with_max_session_messages(2));
    let host = host.build().unwrap();
    let agent = host.agent();
    let first = send(agent, "s", "one", BusyPolicy::Queue).await;
    let second = send(agent, "s", "two", BusyPolicy::Queue).await;
    let third = send(agent, "s", "three", BusyPolicy::Queue).await;
    let refused = refusal(send(agent, "s", "four", BusyPolicy::Queue).await).await;
    assert_eq!(refused, Busy::Session { messages: 2, bytes: 8 });
    assert_eq!(
        refused.to_string(),
        "2 messages of 8 bytes wait in this session already: send this one again when some are answered"
    );
    // A copy of a message that was accepted is no message more.
    let again = send(agent, "s", "two", BusyPolicy::Queue).await;
    // One that was given up makes room at once.
    agent
        .cancel(&TurnRequest::new("s", "three", "three").turn_id())
        .await
        .unwrap();
    assert_eq!(third.await.unwrap().unwrap().status, TurnStatus::Cancelled);
    let fourth = send(agent, "s", "four", BusyPolicy::Queue).await;
    handle.next_call().await.respond("ok");
    for (running, text) in [(first, "1"), (second, "2"), (again, "2"), (fourth, "3")] {
        assert_eq!(running.await.unwrap().unwrap().text, text);
    }
}

#[tokio::test]
async fn messages_that_are_to_join_a_turn_count_as_waiting() {
    let model = working().says("all");
    let (host, mut handle) = limited(&model, BacklogLimits::new().with_max_session_messages(1));
    let host = host.build().unwrap();
    let first = send(host.agent(), "s", "one", BusyPolicy::Steer).await;
    let second = send(host.agent(), "s", "two", BusyPolicy::Steer).await;
    let refused = refusal(send(host.agent(), "s", "three", BusyPolicy::Steer).await).await;
    assert_eq!(refused, Busy::Session { messages: 1, bytes: 3 });
    handle.next_call().await.respond("ok");
    assert_eq!(first.await.unwrap().unwrap().text, "all");
    assert_eq!(second.await.unwrap().unwrap().text, "all");
}

#[tokio::test]
async fn a_session_keeps_a_bounded_length_waiting() {
    let model = working().says("1").says("2");
    let (host, mut handle) = limited(&model, BacklogLimits::new().with_max_session_bytes(10));
    let host = host.build().unwrap();
    let first = send(host.agent(), "s", "one", BusyPolicy::Queue).await;
    // The only one that waits is accepted whatever its length.
    let second = send(host.agent(), "s", "a long message", BusyPolicy::Queue).await;
    let refused = refusal(send(host.agent(), "s", "x", BusyPolicy::Queue).await).await;
    assert_eq!(refused, Busy::Session { messages: 1, bytes: 14 });
    handle.next_call().await.respond("ok");
    assert_eq!(first.await.unwrap().unwrap().text, "1");
    assert_eq!(second.await.unwrap().unwrap().text, "2");
}

#[tokio::test]
async fn a_host_works_on_a_bounded_number_of_messages() {
    for limits in [
        BacklogLimits::new().with_max_messages(1),
        BacklogLimits::new().with_max_bytes(4),
    ] {
        let model = working().says("1").says("2");
        let (host, mut handle) = limited(&model, limits);
        let host = host.build().unwrap();
        let first = send(host.agent(), "a", "one", BusyPolicy::Queue).await;
        let refused = refusal(send(host.agent(), "b", "two", BusyPolicy::Queue).await).await;
        assert_eq!(refused, Busy::Host { messages: 1, bytes: 3 });
        handle.next_call().await.respond("ok");
        assert_eq!(first.await.unwrap().unwrap().text, "1");
        // Nothing was recorded of the message that was refused, so it can be sent again.
        let second = send(host.agent(), "b", "two", BusyPolicy::Queue).await;
        assert_eq!(second.await.unwrap().unwrap().text, "2");
    }
}

#[tokio::test]
async fn one_principal_leaves_room_for_others() {
    for limits in [
        BacklogLimits::new().with_max_principal_messages(2),
        BacklogLimits::new().with_max_principal_bytes(7),
    ] {
        let model = working().hangs().hangs().says("1").says("2");
        let (host, mut handle) = limited(&model, limits);
        let host = host.build().unwrap();
        let ann = host.agent().for_principal("ann");
        let bob = host.agent().for_principal("bob");
        let first = send(&ann, "a", "one", BusyPolicy::Queue).await;
        let _second = send(&ann, "b", "two", BusyPolicy::Queue).await;
        let refused = refusal(send(&ann, "c", "three", BusyPolicy::Queue).await).await;
        assert_eq!(refused, Busy::Principal { messages: 2, bytes: 6 });
        assert_eq!(
            refused.to_string(),
            "the agent works on 2 messages of 6 bytes of this user already: send this one again when some are answered"
        );
        let _others = send(&bob, "c", "three", BusyPolicy::Queue).await;
        assert_eq!(model.requests().len(), 3);
        handle.next_call().await.respond("ok");
        assert_eq!(first.await.unwrap().unwrap().text, "1");
        let fourth = send(&ann, "c", "four", BusyPolicy::Queue).await;
        assert_eq!(fourth.await.unwrap().unwrap().text, "2");
    }
}

/// A host with a bus and these limits, and the replies to users.
async fn serving(
    model: &ScriptedModel,
    limits: BacklogLimits,
) -> (AgentHost, MockToolHandle, InProcessBus, mpsc::UnboundedReceiver<String>) {
    let bus = InProcessBus::new();
    let (sender, replies) = mpsc::unbounded_channel();
    let listener = move |delivery: Delivery| {
        let reply: AgentReply = delivery.envelope.payload().unwrap();
        if reply.is_final {
            sender.send(reply.content.to_string()).unwrap();
        }
        async { Disposition::Ack }
    };
    // Lives as long as the bus.
    std::mem::forget(bus.on("desk", "desk", listener).await.unwrap());
    let (host, handle) = limited(model, limits);
    let budget = Budget::default().with_max_wall_clock(LONG);
    let host = host.bus(bus.clone()).serve_users().budget(budget).build().unwrap();
    host.start().await.unwrap();
    (host, handle, bus, replies)
}

async fn publish(bus: &InProcessBus, session: &str, text: &str) {
    let message = MessageEnvelope::of(&UserMessage::new(session, text)).unwrap();
    let message = message.with_id(text).with_reply_to("desk");
    bus.publish("user.message", Arc::new(message)).await.unwrap();
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_bus_keeps_a_message_that_is_not_accepted() {
    let model = working().says("1").says("2");
    let (host, mut handle, bus, mut replies) = serving(&model, BacklogLimits::new().with_max_messages(1)).await;
    publish(&bus, "a", "one").await;
    publish(&bus, "b", "two").await;
    // The second one is in no journal: a crash would leave it to the bus.
    let second = TurnRequest::new("b", "two", "two");
    assert!(matches!(host.trace(&second.turn_id()).await, Ok(None)));
    handle.next_call().await.respond("ok");
    assert_eq!(replies.recv().await.unwrap(), "1");
    assert_eq!(replies.recv().await.unwrap(), "2");
    assert_eq!(bus.dead_letters(9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_finds_no_room_for_long_is_refused_in_words() {
    let model = ScriptedModel::new().hangs().hangs();
    let (_host, _handle, bus, mut replies) = serving(&model, BacklogLimits::new().with_max_messages(1)).await;
    publish(&bus, "a", "one").await;
    publish(&bus, "b", "two").await;
    assert_eq!(
        replies.recv().await.unwrap(),
        "This message could not be accepted: the agent works on 1 messages of 3 bytes already: \
        send this one again a little later."
    );
    sleep(Duration::from_secs(1)).await;
    let letters = bus.dead_letters(9).await.unwrap();
    let letters: Vec<_> = letters
        .iter()
        .map(|letter| letter.envelope.message_id.as_str())
        .collect();
    assert_eq!(letters, ["two"]);
}

#[tokio::test(start_paused = true)]
async fn full_sessions_leave_workers_to_others() {
    let sessions = 20;
    let model = (0..=sessions).fold(ScriptedModel::new(), |model, _| model.hangs());
    let limits = BacklogLimits::new().with_max_session_messages(1);
    let (_host, _handle, bus, _replies) = serving(&model, limits).await;
    for message in 0..3 {
        for session in 0..sessions {
            publish(&bus, &session.to_string(), &format!("{session}-{message}")).await;
        }
    }
    publish(&bus, "another", "hi").await;
    assert_eq!(model.requests().len(), sessions + 1);
}
