//! Two processes of one agent that run at the same time: each host here has what a process has.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use rockbot::chat::SharedPermits;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::store::ConversationMemory as _;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_core::turn::{
    Acceptance, RunAccepted, RunBody, RunKey, RunQuery, RunState, TurnJournal as _, TurnRequest, TurnStatus,
};
use rockbot_core::{Clock as _, Digest, SystemClock};
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::{Schema, me, with_schema};
use crate::support::{Anything, Notes, ending, transcript};

/// A started host whose tool `work` notes that it began, and waits for the permission to end.
async fn working(schema: &Schema, model: &ScriptedModel) -> (AgentHost, Notes, Arc<Notify>) {
    let (builder, notes) = schema.process("clerk", model).await;
    working_with(builder, notes).await
}

/// Adds the tool `work` to an agent, and starts it.
pub(super) async fn working_with(builder: AgentHostBuilder, notes: Notes) -> (AgentHost, Notes, Arc<Notify>) {
    let (begun, go) = (notes.clone(), Arc::new(Notify::new()));
    let permission = go.clone();
    let work = tool("work", move |_: Anything| {
        let (begun, permission) = (begun.clone(), permission.clone());
        async move {
            begun.add("work");
            permission.notified().await;
            "worked"
        }
    });
    let host = builder.tool(work.pure()).build().unwrap();
    host.start().await.unwrap();
    (host, notes, go)
}

/// Waits until `is_so`, for a minute at most.
pub(super) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting)
        .await
        .expect("it takes too long");
}

#[tokio::test]
async fn messages_of_a_session_are_answered_one_after_another_in_two_processes() {
    with_schema(async |schema| {
        let model = ScriptedModel::new().calls("work", json!({"n": 1})).says("First.");
        let (first, notes, go) = working(schema, &model).await;
        let later = ScriptedModel::new().says("Elsewhere.").says("Second.");
        let (second, ..) = working(schema, &later).await;

        let running = first.agent().ask("s", "One.").start().await.unwrap();
        until(async || notes.all() == ["work"]).await;
        let waiting = second.agent().ask("s", "Two.").start().await.unwrap();
        // Another session waits for none, and all of it takes longer than the lease.
        assert_eq!(second.agent().ask("other", "Three.").await.unwrap().text, "Elsewhere.");
        sleep(Duration::from_secs(4)).await;
        assert_eq!(later.requests().len(), 1);
        go.notify_one();
        assert_eq!(running.outcome().await.unwrap().text, "First.");
        assert_eq!(waiting.outcome().await.unwrap().text, "Second.");
        let shown = transcript(&later.requests()[1]);
        let place = |text: &str| shown.iter().position(|line| line.contains(text)).expect(text);
        assert!(
            place("One.") < place("First.") && place("First.") < place("Two."),
            "{shown:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_cancellation_reaches_the_process_that_works() {
    with_schema(async |schema| {
        let model = ScriptedModel::new().calls("work", json!({"n": 1}));
        let (first, notes, _go) = working(schema, &model).await;
        let (second, ..) = working(schema, &ScriptedModel::new()).await;
        let running = first.agent().ask("s", "Work.").start().await.unwrap();
        until(async || notes.all() == ["work"]).await;
        second.agent().cancel(running.id()).await.unwrap();
        assert_eq!(running.outcome().await.unwrap().status, TurnStatus::Cancelled);
    })
    .await;
}

#[tokio::test]
async fn a_question_is_answered_in_another_process_and_forgotten_in_the_first() {
    with_schema(async |schema| {
        let model = ScriptedModel::new().calls("pay", json!({"n": 7}));
        let (first, ..) = working(schema, &model).await;
        let parked = first.agent().run(TurnRequest::new("s", "m", "Pay 7.")).await.unwrap();
        let asks = first.agent().approvals();
        assert_eq!(asks.len(), 1);

        let later = ScriptedModel::new().says("Hello.").says("Paid.");
        let (second, paid, _) = working(schema, &later).await;
        assert_eq!(
            second.agent().ask("s", "Hi").await.unwrap().text,
            "Hello.",
            "a parked turn is in nobody's way"
        );
        until(async || second.agent().approvals() == asks).await;
        second.agent().decide(asks[0].approve()).await.unwrap();
        let outcome = second.agent().outcome(&parked.turn).await.unwrap();
        assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Paid."));
        assert_eq!(paid.all(), ["pay 7"]);
        until(async || first.agent().approvals().is_empty()).await;
        let again = first.agent().run(TurnRequest::new("s", "m", "Pay 7.")).await.unwrap();
        assert_eq!(ending(&again), (&TurnStatus::Answered, "Paid."));
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_a_stopping_process_left_goes_on_in_another() {
    with_schema(async |schema| {
        let model = ScriptedModel::new().calls("pay", json!({"n": 1})).hangs();
        let (first, paid, _) = working(schema, &model).await;
        let parked = first.agent().run(TurnRequest::new("s", "m", "Pay.")).await.unwrap();
        let later = ScriptedModel::new().says("Paid.");
        let (second, paid_again, _) = working(schema, &later).await;
        first
            .agent()
            .decide(first.agent().approvals()[0].approve())
            .await
            .unwrap();
        until(async || model.requests().len() == 2).await;
        first.shutdown(Duration::ZERO).await;

        let memory = schema.connect().await.conversations;
        until(async || memory.recent(&me(), &"s".into(), 9).await.unwrap().len() == 2).await;
        let outcome = second.agent().outcome(&parked.turn).await.unwrap();
        assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Paid."));
        assert_eq!((paid.all(), paid_again.all()), (vec!["pay 1".to_owned()], Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn a_turn_of_a_newer_version_is_left_to_a_process_that_knows_it() {
    with_schema(async |schema| {
        let journal = schema.connect().await.journal;
        let key = RunKey::new(me(), "s", "m").with_agent("clerk".to_owned());
        let body = RunBody::new(Arc::new(json!({"version": 999, "request": {}})));
        let run = RunAccepted::new("clerk/newer", key, Digest::of(["m"]), SystemClock.now(), body);
        let accepted = journal.accept(&run, "newer", Duration::from_secs(60)).await.unwrap();
        let Acceptance::New(claim) = accepted else {
            panic!("the turn is new, got {accepted:?}")
        };
        journal.release(claim).await;

        let (host, ..) = working(schema, &ScriptedModel::new().says("Hello.")).await;
        assert_eq!(host.agent().ask("other", "Hi").await.unwrap().text, "Hello.");
        // Longer than the time from one sweep to the next.
        sleep(Duration::from_secs(2)).await;
        // A sweep holds the turn for the moment in which it reads the version.
        until(async || journal.cluster().unwrap().free(&RunQuery::all()).await.unwrap().len() == 1).await;
        let stored = journal.read(&"clerk/newer".into()).await.unwrap().unwrap();
        assert!(matches!(stored.state, RunState::Unfinished));
    })
    .await;
}

/// A model that takes a while, and counts the calls that it has and had at most.
#[derive(Debug, Clone, Default)]
struct Slow(Arc<(AtomicUsize, AtomicUsize)>);

#[async_trait]
impl ChatClient for Slow {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        let (running, most) = &*self.0;
        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sleep(Duration::from_millis(50)).await;
        running.fetch_sub(1, Ordering::SeqCst);
        Ok(ChatResponse::text("Done."))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn two_processes_share_permits_for_models() {
    with_schema(async |schema| {
        let model = Slow::default();
        let process = async || {
            let stores = schema.connect().await;
            let permits = SharedPermits::new(stores.shared_documents.clone(), 2);
            let host = AgentHost::builder("clerk").chat(model.clone()).chat_layer(permits);
            host.add(stores).build().unwrap()
        };
        let (first, second) = (process().await, process().await);
        let asks = (0..10).flat_map(|number| {
            [&first, &second].map(|host| host.agent().ask(format!("s{number}"), "Hi").into_future())
        });
        for answer in join_all(asks).await {
            answer.unwrap();
        }
        assert_eq!(model.0.1.load(Ordering::SeqCst), 2);
    })
    .await;
}
