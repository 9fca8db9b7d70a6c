//! Messages to a busy session, by each busy policy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::SessionId;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, OutputSchema, Role,
};
use rockbot_core::context::Extensions;
use rockbot_core::testing::{MockToolHandle, ScriptedModel, mock_tool};
use rockbot_core::turn::{Budget, BusyPolicy, TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_host::{Agent, AgentHost, TurnError};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{Anything, calls, end_of, ending, host_of, settle, transcript, unguarded};

/// Sends a message and lets it get as far as it can.
async fn send(agent: &Agent, message: &str, busy: BusyPolicy) -> JoinHandle<Result<TurnOutcome, TurnError>> {
    let request = TurnRequest::new("s", message, message).with_busy(busy);
    let agent = agent.clone();
    let running = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    running
}

async fn outcome(running: JoinHandle<Result<TurnOutcome, TurnError>>) -> TurnOutcome {
    running.await.unwrap().unwrap()
}

/// A host whose model first calls `work`, which the handle answers.
fn busy_host(model: &ScriptedModel, mutating: bool) -> (AgentHost, MockToolHandle) {
    let (work, handle) = mock_tool("work");
    let work = if mutating { work } else { work.pure() };
    (host_of(model).tool(work).build().unwrap(), handle)
}

fn working() -> ScriptedModel {
    ScriptedModel::new().calls("work", json!({}))
}

/// A message that was sent while another one was being answered.
type Sent = Arc<Mutex<Option<JoinHandle<Result<TurnOutcome, TurnError>>>>>;

/// A host that is steered by message `two` while its model writes its first answer.
fn host_that_sends_two(model: &ScriptedModel) -> (AgentHost, Sent) {
    let agent = Arc::new(Mutex::new(None::<Agent>));
    let sent = Sent::default();
    let inner = model.clone();
    let to = agent.clone();
    let kept = sent.clone();
    let sending = tower::layer::layer_fn(move |_| {
        let inner = inner.clone();
        let to = to.clone();
        let kept = kept.clone();
        tower::service_fn(move |call: ChatCall| {
            let inner = inner.clone();
            let to = to.clone();
            let kept = kept.clone();
            async move {
                let agent = to.lock().unwrap().take();
                if let Some(agent) = agent {
                    let two = send(&agent, "two", BusyPolicy::Steer).await;
                    *kept.lock().unwrap() = Some(two);
                }
                inner.chat(call).await
            }
        })
    });
    let host = host_of(model).chat_layer(sending).build().unwrap();
    *agent.lock().unwrap() = Some(host.agent().clone());
    (host, sent)
}

#[tokio::test]
async fn queued_messages_are_answered_in_order() {
    let model = working().says("1").says("2").says("3");
    let (host, mut handle) = busy_host(&model, false);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let second = send(agent, "two", BusyPolicy::Queue).await;
    let third = send(agent, "three", BusyPolicy::Queue).await;
    assert_eq!(model.requests().len(), 1);
    handle.next_call().await.respond("ok");
    for (running, text) in [(first, "1"), (second, "2"), (third, "3")] {
        assert_eq!(ending(&outcome(running).await), (&TurnStatus::Answered, text));
    }
    let last = transcript(&model.requests()[3]);
    let said = ["user: one", "assistant: 1", "user: two", "assistant: 2", "user: three"];
    assert_eq!(last[1..], said);
}

#[tokio::test]
async fn an_abandoned_queued_message_leaves_the_queue() {
    let model = working().says("1").says("3");
    let (host, mut handle) = busy_host(&model, false);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let second = send(agent, "two", BusyPolicy::Queue).await;
    let third = send(agent, "three", BusyPolicy::Queue).await;
    agent
        .cancel(&TurnRequest::new("s", "two", "two").turn_id())
        .await
        .unwrap();
    assert_eq!(
        outcome(second).await.status,
        TurnStatus::Cancelled,
        "at once, not when it is its turn"
    );
    handle.next_call().await.respond("ok");
    assert_eq!(
        (outcome(first).await.text, outcome(third).await.text),
        ("1".to_owned(), "3".to_owned())
    );
}

#[tokio::test]
async fn a_steering_message_joins_at_the_next_model_call() {
    let model = working().says("both");
    let (host, mut handle) = busy_host(&model, false);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let second = send(agent, "two", BusyPolicy::Steer).await;
    handle.next_call().await.respond("ok");
    let first = outcome(first).await;
    let second = outcome(second).await;
    assert_eq!(ending(&first), (&TurnStatus::Answered, "both"));
    assert_eq!(ending(&second), (&TurnStatus::Joined(first.turn), "both"));
    assert_eq!(
        transcript(&model.requests()[1])[1..],
        ["user: one", "assistant: ", "tool: ok", "user: two"]
    );
    model.assert_complete();
}

#[tokio::test]
async fn a_steering_message_that_came_while_the_model_wrote_its_answer_is_answered_too() {
    let model = ScriptedModel::new().says("to one").says("to both");
    let (host, two) = host_that_sends_two(&model);
    let one = outcome(send(host.agent(), "one", BusyPolicy::Queue).await).await;
    let two = two.lock().unwrap().take().unwrap();
    let two = outcome(two).await;
    assert_eq!((one.text.as_str(), two.text.as_str()), ("to both", "to both"));
    assert_eq!(
        transcript(&model.requests()[1])[1..],
        ["user: one", "assistant: to one", "user: two"]
    );
}

#[tokio::test]
async fn a_steering_message_that_came_too_late_runs_on_its_own() {
    let model = working().says("own answer");
    let (host, mut handle) = busy_host(&model, true);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let call = handle.next_call().await;
    agent
        .cancel(&TurnRequest::new("s", "one", "one").turn_id())
        .await
        .unwrap();
    settle().await;
    let second = send(agent, "two", BusyPolicy::Steer).await;
    call.respond("done");
    assert_eq!(outcome(first).await.status, TurnStatus::Cancelled);
    assert_eq!(ending(&outcome(second).await), (&TurnStatus::Answered, "own answer"));
}

#[tokio::test]
async fn a_steering_message_runs_on_its_own_when_the_running_turn_fails() {
    let model = ScriptedModel::new().fails(ChatErrorKind::Overloaded).says("own answer");
    let (host, second) = host_that_sends_two(&model);
    let first = outcome(send(host.agent(), "one", BusyPolicy::Queue).await).await;
    assert_eq!(
        first.status,
        TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::Overloaded))
    );
    let second = second.lock().unwrap().take().unwrap();
    assert_eq!(ending(&outcome(second).await), (&TurnStatus::Answered, "own answer"));
}

#[tokio::test]
async fn a_message_that_joined_a_turn_without_an_answer_has_none_either() {
    let model = working().hangs().says("next");
    let (host, mut handle) = busy_host(&model, false);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let second = send(agent, "two", BusyPolicy::Steer).await;
    handle.next_call().await.respond("ok");
    settle().await;
    agent
        .cancel(&TurnRequest::new("s", "one", "one").turn_id())
        .await
        .unwrap();
    let first = outcome(first).await;
    let second = outcome(second).await;
    assert_eq!(first.status, TurnStatus::Cancelled);
    assert_eq!(ending(&second), (&TurnStatus::Cancelled, first.text.as_str()));
    let next = transcript(&model.requests()[1]);
    assert_eq!(next.last().unwrap(), "user: two", "it had joined");
    assert_eq!(agent.ask("s", "three").await.unwrap().text, "next");
}

#[tokio::test]
async fn a_steering_message_with_settings_of_its_own_waits_and_keeps_them() {
    let two = || TurnRequest::new("s", "two", "two").with_busy(BusyPolicy::Steer);
    let mut extensions = Extensions::new();
    extensions.insert(1_u8);
    let requests = [
        two().with_tier(ModelTier::High),
        two().with_output(OutputSchema::of::<Anything>()),
        two().with_budget(Budget::default()),
        two().with_instructions("Be brief."),
        two().with_extensions(extensions),
    ];
    for request in requests {
        let model = working().says("1").says("{}");
        let (host, mut handle) = busy_host(&model, false);
        let first = send(host.agent(), "one", BusyPolicy::Queue).await;
        let agent = host.agent().clone();
        let tier = request.tier;
        let second = tokio::spawn(async move { agent.run(request).await });
        settle().await;
        handle.next_call().await.respond("ok");
        assert_eq!(outcome(first).await.text, "1");
        assert_eq!(ending(&outcome(second).await), (&TurnStatus::Answered, "{}"));
        assert_eq!(model.requests()[2].tier, tier);
    }
}

#[tokio::test]
async fn a_steering_message_that_is_cancelled_before_it_is_read_is_never_read() {
    let model = working().says("to one");
    let (host, mut handle) = busy_host(&model, false);
    let first = send(host.agent(), "one", BusyPolicy::Queue).await;
    let second = send(host.agent(), "two", BusyPolicy::Steer).await;
    host.agent()
        .cancel(&TurnRequest::new("s", "two", "two").turn_id())
        .await
        .unwrap();
    assert_eq!(outcome(second).await.status, TurnStatus::Cancelled);
    handle.next_call().await.respond("ok");
    assert_eq!(outcome(first).await.text, "to one");
    let last = transcript(&model.requests()[1]);
    assert!(!last.contains(&"user: two".to_owned()), "{last:?}");
}

#[tokio::test]
async fn a_steering_message_in_a_free_session_is_an_ordinary_one() {
    let model = ScriptedModel::new().says("hello");
    let (host, _handle) = busy_host(&model, false);
    let only = send(host.agent(), "one", BusyPolicy::Steer).await;
    assert_eq!(ending(&outcome(only).await), (&TurnStatus::Answered, "hello"));
}

#[tokio::test]
async fn a_superseding_message_waits_for_a_mutating_call_and_history_keeps_both() {
    let model = working().says("2");
    let (host, mut handle) = busy_host(&model, true);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let call = handle.next_call().await;
    let second = send(agent, "two", BusyPolicy::Supersede).await;
    assert_eq!(
        (handle.running(), model.requests().len()),
        (1, 1),
        "the call still runs"
    );
    call.respond("worked");
    let superseded = outcome(first).await;
    let text = "This request was not finished: a newer message took its place. Done before that: work.";
    assert_eq!(ending(&superseded), (&TurnStatus::Superseded, text));
    assert_eq!(superseded.calls.len(), 1);
    assert_eq!(ending(&outcome(second).await), (&TurnStatus::Answered, "2"));
    let history = transcript(&model.requests()[1]);
    assert_eq!(
        history[1..],
        [
            "user: one".to_owned(),
            format!("assistant: {text}"),
            "user: two".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_superseding_message_drops_what_changes_nothing() {
    let model = working().says("2");
    let (host, mut handle) = busy_host(&model, false);
    let first = send(host.agent(), "one", BusyPolicy::Queue).await;
    let mut call = handle.next_call().await;
    let second = send(host.agent(), "two", BusyPolicy::Supersede).await;
    call.dropped().await;
    assert_eq!(outcome(first).await.status, TurnStatus::Superseded);
    assert_eq!(outcome(second).await.text, "2");
}

#[tokio::test]
async fn the_newest_superseding_message_wins_and_queued_ones_keep_their_place() {
    let model = working().says("to four").says("to two");
    let (host, mut handle) = busy_host(&model, true);
    let agent = host.agent();
    let first = send(agent, "one", BusyPolicy::Queue).await;
    let call = handle.next_call().await;
    let queued = send(agent, "two", BusyPolicy::Queue).await;
    let third = send(agent, "three", BusyPolicy::Supersede).await;
    let fourth = send(agent, "four", BusyPolicy::Supersede).await;
    assert_eq!(outcome(third).await.status, TurnStatus::Superseded);
    call.respond("worked");
    assert_eq!(outcome(first).await.status, TurnStatus::Superseded);
    assert_eq!(ending(&outcome(fourth).await), (&TurnStatus::Answered, "to four"));
    assert_eq!(ending(&outcome(queued).await), (&TurnStatus::Answered, "to two"));
}

#[tokio::test]
async fn sessions_and_principals_do_not_wait_for_each_other() {
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .calls("work", json!({}))
        .calls("work", json!({}));
    let model = model.says("done").says("done").says("done");
    let (host, mut handle) = busy_host(&model, true);
    let requests = [
        TurnRequest::new("a", "1", "hi"),
        TurnRequest::new("b", "1", "hi"),
        TurnRequest::new("a", "1", "hi").with_principal("somebody"),
    ];
    let running: Vec<_> = requests
        .into_iter()
        .map(|request| {
            let agent = host.agent().clone();
            tokio::spawn(async move { agent.run(request).await })
        })
        .collect();
    settle().await;
    assert_eq!(handle.running(), 3);
    for _ in 0..3 {
        handle.next_call().await.respond("ok");
    }
    for running in running {
        assert_eq!(outcome(running).await.status, TurnStatus::Answered);
    }
}

/// A small generator, so that a failing seed can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.below(50))
    }
}

/// Takes its time, sometimes calls a tool, and answers with what it was asked last. Watches that
/// it is never asked twice at once in a session.
struct SlowModel {
    random: Mutex<Random>,
    asked: Arc<Mutex<BTreeMap<SessionId, usize>>>,
}

struct Asked(Arc<Mutex<BTreeMap<SessionId, usize>>>, SessionId);

impl Drop for Asked {
    fn drop(&mut self) {
        *self.0.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

#[async_trait]
impl ChatClient for SlowModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let session = call.cx.session().clone();
        let at_once = {
            let mut asked = self.asked.lock().unwrap();
            let at_once = asked.entry(session.clone()).or_default();
            *at_once += 1;
            *at_once
        };
        let _asked = Asked(self.asked.clone(), session);
        assert_eq!(at_once, 1, "one turn at a time in a session");
        let (pause, uses_tool) = {
            let mut random = self.random.lock().unwrap();
            (random.pause(), random.below(3) == 0)
        };
        tokio::time::sleep(pause).await;
        if uses_tool {
            return Ok(calls([("1", "work", "{}")]));
        }
        let said = call
            .request
            .messages
            .iter()
            .rev()
            .find(|message| message.role == Role::User);
        Ok(ChatResponse::text(
            said.map_or_else(String::new, |said| format!("to {}", said.text())),
        ))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_the_policies_and_delays_each_message_gets_exactly_one_final_reply() {
    for seed in 1..=60_u64 {
        eprintln!("seed {seed}");
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let model = SlowModel {
            random: Mutex::new(Random(seed)),
            asked: Arc::default(),
        };
        let (work, mut handle) = mock_tool("work");
        let host = AgentHost::in_memory()
            .policies(unguarded())
            .chat(model)
            .tool(work)
            .build()
            .unwrap();
        let agent = host.agent().clone();
        let answering = tokio::spawn(async move {
            loop {
                let call = handle.next_call().await;
                assert!(handle.running() <= 2, "mutating calls of one session never overlap");
                tokio::time::sleep(Duration::from_millis(7)).await;
                call.respond("ok");
            }
        });
        let mut running = Vec::new();
        for message in 0..12 {
            let busy = [BusyPolicy::Queue, BusyPolicy::Steer, BusyPolicy::Supersede][random.below(3) as usize];
            let session = ["a", "b"][random.below(2) as usize];
            let text = format!("message {message}");
            let request = TurnRequest::new(session, text.as_str(), text.as_str()).with_busy(busy);
            let cancels = random.below(8) == 0;
            let turn = request.turn_id();
            let stream = agent.stream_turn(request);
            running.push((text, busy, turn.clone(), tokio::spawn(end_of(stream))));
            tokio::time::sleep(random.pause()).await;
            if cancels {
                // It may have ended already.
                let _ = agent.cancel(&turn).await;
            }
        }
        for (text, busy, turn, ended) in running {
            let outcome = ended.await.unwrap();
            assert_eq!(outcome.turn, turn);
            match &outcome.status {
                TurnStatus::Answered => assert!(outcome.text.starts_with("to message"), "{text}: {}", outcome.text),
                TurnStatus::Joined(_) => assert_eq!(busy, BusyPolicy::Steer, "{text}"),
                TurnStatus::Cancelled | TurnStatus::Superseded => {}
                other => panic!("{text} ended with {other:?}"),
            }
            assert_eq!(
                agent.outcome(&turn).await.unwrap(),
                outcome,
                "the journal has the same reply"
            );
        }
        answering.abort();
    }
}
