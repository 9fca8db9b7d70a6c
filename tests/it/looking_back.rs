//! Signs of quality: what turns let know, and looking back at sessions that have ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::memory::{FeedbackSignals, SessionEvaluation};
use rockbot::testing::{ManualClock, ScriptedModel};
use rockbot_core::chat::ChatCall;
use rockbot_core::context::Priority;
use rockbot_core::store::{
    FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryFeedbackStore, StoreError, TimelineStore,
};
use rockbot_core::subsystem::{Declarations, Idle, Parts, Running, Subsystem};
use rockbot_core::tool::{ToolError, tool};
use rockbot_core::turn::{EndedTurn, TurnObserver};
use rockbot_core::{BoxError, Principal, Timestamp};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use serde_json::json;

use crate::support::{Anything, Notes, host_of, settle};

const SUMMARY: &str = r#"{"summary":"They spoke of the weather.","toolsWorkedWell":[],"toolsFailedOrMissed":["radar"],"correctionsMade":1,"overallQuality":"fair"}"#;

fn keeping(builder: AgentHostBuilder) -> (AgentHostBuilder, Arc<InMemoryFeedbackStore>) {
    let store = Arc::new(InMemoryFeedbackStore::new());
    (builder.give::<dyn FeedbackStore>(store.clone()), store)
}

async fn started(builder: AgentHostBuilder) -> AgentHost {
    let host = builder.build().unwrap();
    host.start().await.unwrap();
    host
}

/// Returns what is stored of the local user: signal, session and summary.
async fn kept(store: &InMemoryFeedbackStore) -> Vec<(FeedbackSignal, String, String)> {
    let all = store
        .query_recent(&Principal::default(), Timestamp::default(), 100)
        .await;
    let kept = |entry: FeedbackEntry| (entry.signal_type, entry.session_id.to_string(), entry.summary);
    all.unwrap().into_iter().map(kept).collect()
}

#[tokio::test]
async fn corrections_and_failing_tools_are_written_down() {
    let model = ScriptedModel::new()
        .says("It rains in Oslo.")
        .calls_all([("radar", json!({})), ("radar", json!({}))])
        .says("It snows in Bergen.")
        .says("You are welcome.");
    let radar = tool("radar", |_: Anything| async {
        Err::<String, _>(ToolError::execution_failed("no signal"))
    });
    let (builder, store) = keeping(host_of(&model).tool(radar));
    let host = started(builder.add(FeedbackSignals::new())).await;
    for text in ["How is the weather?", "No, I meant in Bergen.", "No problem, thanks!"] {
        host.agent().ask("s", text).await.unwrap();
    }
    // What waits is written when the host stops.
    host.shutdown(Duration::from_secs(10)).await;
    let entry = |signal, summary: &str| (signal, "s".to_owned(), summary.to_owned());
    let expected = [
        entry(FeedbackSignal::Correction, "The user had meant something else."),
        entry(
            FeedbackSignal::ToolFailure,
            "The tool `radar` failed in 2 of 2 calls of a turn.",
        ),
    ];
    assert_eq!(kept(&store).await, expected);
}

/// A store that never ends a write.
#[derive(Debug)]
struct Stuck;

#[async_trait]
impl TimelineStore<FeedbackEntry> for Stuck {
    async fn append(&self, _: &Principal, _: FeedbackEntry) -> Result<(), StoreError> {
        std::future::pending().await
    }

    async fn query_recent(&self, _: &Principal, _: Timestamp, _: usize) -> Result<Vec<FeedbackEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn purge(&self, _: Timestamp, _: usize) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_delays_no_turn() {
    let model = (0..1_100).fold(ScriptedModel::new().says("It rains."), |model, _| {
        model.says("It snows.")
    });
    let host = started(
        host_of(&model)
            .stores(Stores::new().with_feedback(Stuck))
            .add(FeedbackSignals::new()),
    )
    .await;
    for _ in 0..1_101 {
        host.agent().ask("s", "That's wrong.").await.unwrap();
    }
    model.assert_complete();
    host.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn who_writes_feedback_needs_a_store() {
    let signals = || host_of(&ScriptedModel::new()).add(FeedbackSignals::new());
    let error = signals().build().unwrap_err().to_string();
    assert!(
        error.contains("call `.stores(…)` with a `Stores::with_feedback`"),
        "{error}"
    );
    signals().add(SessionEvaluation::default()).build().unwrap();
}

/// Notes what it is told, and panics when it is told to.
#[derive(Debug, Clone)]
struct Watching(Notes);

impl TurnObserver for Watching {
    fn ended(&self, turn: &EndedTurn<'_>) {
        let answer = turn.previous_answer.unwrap_or("nothing");
        self.0.add(format!(
            "{} after {answer}: {}",
            turn.request.content, turn.outcome.text
        ));
        assert!(!turn.request.content.text().contains("panic"));
    }
}

#[async_trait]
impl Subsystem for Watching {
    fn name(&self) -> &str {
        "watching"
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        needs.observe(self.clone());
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}

#[tokio::test]
async fn an_observer_sees_each_turn_and_breaks_none() {
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let notes = Notes::default();
    let host = host_of(&model).add(Watching(notes.clone())).build().unwrap();
    for text in ["first", "panic", "third"] {
        host.agent().ask("s", text).await.unwrap();
    }
    settle().await;
    assert_eq!(
        notes.all(),
        [
            "first after nothing: one",
            "panic after one: two",
            "third after two: three"
        ]
    );
}

/// A host that looks back at sessions, in `folder`.
async fn looking_back(
    model: &ScriptedModel,
    clock: &ManualClock,
    store: &Arc<InMemoryFeedbackStore>,
    folder: &Path,
) -> AgentHost {
    let builder = AgentHost::builder("clerk")
        .chat(model.clone())
        .clock(clock.clone())
        .data_dir(folder);
    let builder = builder.give::<dyn FeedbackStore>(store.clone());
    started(builder.add(FeedbackSignals::new()).add(SessionEvaluation::default())).await
}

/// Time goes by, for the clock and for timers.
async fn pass(clock: &ManualClock, minutes: u64) {
    for _ in 0..minutes {
        clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

fn summary(session: &str) -> (FeedbackSignal, String, String) {
    let text = "They spoke of the weather.".to_owned();
    (FeedbackSignal::SessionSummary, session.to_owned(), text)
}

#[tokio::test(start_paused = true)]
async fn a_session_is_looked_back_at_once_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store = Arc::new(InMemoryFeedbackStore::new());
    let model = ScriptedModel::new().says("It rains.").says("It snows.");
    let host = looking_back(&model, &clock, &store, folder.path()).await;
    host.agent().ask("early", "How is the weather?").await.unwrap();
    pass(&clock, 8).await;
    host.agent().ask("late", "And in Bergen?").await.unwrap();
    let model = model.says(SUMMARY);
    pass(&clock, 7).await;
    host.shutdown(Duration::from_secs(10)).await;
    drop(host);
    model.assert_complete();
    assert_eq!(kept(&store).await, [summary("early")]);

    let model = ScriptedModel::new().says(SUMMARY);
    let host = looking_back(&model, &clock, &store, folder.path()).await;
    pass(&clock, 60).await;
    host.shutdown(Duration::from_secs(10)).await;
    drop(host);
    model.assert_complete();
    assert_eq!(kept(&store).await, [summary("early"), summary("late")]);

    let host = looking_back(&ScriptedModel::new(), &clock, &store, folder.path()).await;
    pass(&clock, 60).await;
    assert_eq!(host.readiness(), Ok(()));
    assert_eq!(kept(&store).await, [summary("early"), summary("late")]);
}

#[tokio::test(start_paused = true)]
async fn looking_back_is_paid_and_layered_as_any_call_and_waits_for_turns() {
    let clock = ManualClock::default();
    let notes = Notes::default();
    let asked = ScriptedModel::new();
    let seen = notes.clone();
    let inner = asked.clone();
    let noting = tower::layer::layer_fn(move |service| {
        let seen = seen.clone();
        tower::ServiceBuilder::new()
            .map_request(move |call: ChatCall| {
                if call.cx.priority() == Priority::Dream {
                    seen.add(format!("{} {}", call.cx.session(), call.cx.principal()));
                }
                call
            })
            .service(service)
    });
    let model = inner.says("It rains.").hangs().says(SUMMARY);
    let (builder, store) = keeping(host_of(&model).clock(clock.clone()).chat_layer(noting));
    let host = started(builder.add(SessionEvaluation::default())).await;
    host.agent().ask("s", "How is the weather?").await.unwrap();
    pass(&clock, 9).await;
    let turn = host.agent().stream("other", "Think long.").cancel_on_drop();
    pass(&clock, 3).await;
    assert_eq!(model.requests().len(), 2, "a turn works");
    drop(turn);
    pass(&clock, 1).await;
    assert_eq!(kept(&store).await, [summary("s")]);
    assert_eq!(notes.all(), ["s local"]);
    assert_eq!(
        host.spending()
            .of_session(&Principal::default(), &"s".into())
            .usage
            .total(),
        30
    );
    asked.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_model_that_judges_sees_the_signs() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store = Arc::new(InMemoryFeedbackStore::new());
    let model = ScriptedModel::new().says("It rains.").says("It snows.").says(SUMMARY);
    let host = looking_back(&model, &clock, &store, folder.path()).await;
    host.agent().ask("s", "How is the weather?").await.unwrap();
    host.agent().ask("s", "That's wrong!").await.unwrap();
    pass(&clock, 15).await;
    let request = &model.requests()[2];
    let said = request.messages.last().unwrap().text().into_owned();
    let talk = "User: How is the weather?\nAgent: It rains.\nUser: That's wrong!\nAgent: It snows.\n";
    assert!(
        said.contains(&format!("{talk}[signal] The user said that the answer was wrong.\n")),
        "{said}"
    );
}
