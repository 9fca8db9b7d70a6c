//! Cancelled turns: whatever else happens at that moment, they end and stay ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::layer::RateLimitLayer;
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, Recovery, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::turn::{Budget, BudgetLimit, BusyPolicy, InMemoryTurnJournal, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, Resumed, Stores, TurnError};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::journal::{Counting, SlowDisk};
use crate::support::{Notes, calls, ending, host_of, noting_tool, results, settle};

const NOT_FINISHED: &str = "This request was not finished: it was cancelled. Nothing had been done yet.";

/// The ways in which a turn becomes unwanted.
#[derive(Debug, Clone, Copy)]
enum Way {
    Cancelled,
    AskDropped,
    StreamDropped,
}

const WAYS: [Way; 3] = [Way::Cancelled, Way::AskDropped, Way::StreamDropped];

/// Starts a turn, and lets `way` happen once `ready` is done.
async fn call_off(host: &AgentHost, request: TurnRequest, way: Way, ready: impl Future<Output = ()>) {
    let agent = host.agent();
    let turn = request.turn_id();
    match way {
        Way::Cancelled => {
            let agent = agent.clone();
            let request = request.clone();
            tokio::spawn(async move { agent.run(request).await });
            ready.await;
            let agent = host.agent().clone();
            let cancelling = tokio::spawn(async move { agent.cancel(&turn).await });
            settle().await;
            // It waits for a journal that takes its time.
            if cancelling.is_finished() {
                cancelling.await.unwrap().unwrap();
            }
        }
        Way::AskDropped => tokio::select! {
            biased;
            ended = agent.run(request) => panic!("it should still work, got {ended:?}"),
            () = ready => {}
        },
        Way::StreamDropped => {
            let stream = agent.stream_turn(request).cancel_on_drop();
            ready.await;
            drop(stream);
        }
    }
}

#[tokio::test]
async fn a_cancelled_turn_does_not_come_back_after_a_restart() {
    for way in WAYS {
        for queued in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let kept = |model: &ScriptedModel| host_of(model).data_dir(folder.path()).build().unwrap();
            let host = kept(&ScriptedModel::new().hangs());
            let _first = queued.then(|| host.agent().stream("s", "first"));
            settle().await;
            let request = TurnRequest::new("s", "m", "delete everything");
            call_off(&host, request.clone(), way, settle()).await;
            host.shutdown(Duration::from_secs(5)).await;
            drop(host);

            let host = kept(&ScriptedModel::new().hangs());
            let resumed = host.resume().await.unwrap();
            assert_eq!(resumed.running.len(), usize::from(queued), "{way:?}");
            let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
            assert_eq!(ending(&outcome), (&TurnStatus::Cancelled, NOT_FINISHED), "{way:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancellation_that_was_confirmed_is_not_lost_to_a_stop_at_the_same_time() {
    for round in 0..100 {
        let folder = tempfile::tempdir().unwrap();
        let kept = |model: &ScriptedModel| host_of(model).data_dir(folder.path()).build().unwrap();
        let model = ScriptedModel::new().hangs();
        let host = kept(&model);
        let request = TurnRequest::new("s", "m", "hi");
        let stream = host.agent().stream_turn(request.clone());
        while round % 2 == 0 && model.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        let agent = host.agent().clone();
        let turn = request.turn_id();
        let cancelling = tokio::spawn(async move { agent.cancel(&turn).await });
        host.shutdown(Duration::from_secs(5)).await;
        let cancelled = cancelling.await.unwrap();
        drop((stream, host));
        let host = kept(&ScriptedModel::new().hangs());
        let resumed = host.resume().await.unwrap();
        assert!(cancelled.is_err() || resumed == Resumed::default(), "round {round}");
    }
}

/// A model that never answers, and what it was asked with.
struct Asked(Arc<Mutex<Option<CallContext>>>);

#[async_trait]
impl ChatClient for Asked {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        *self.0.lock().unwrap() = Some(call.cx);
        std::future::pending().await
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn dropping_a_stream_takes_effect_there_and_then() {
    let asked = Arc::default();
    let host = AgentHost::in_memory().chat(Asked(Arc::clone(&asked))).build().unwrap();
    let stream = host.agent().stream("s", "hi").cancel_on_drop();
    settle().await;
    let cx = asked.lock().unwrap().take().unwrap();
    assert!(!cx.cancellation().is_cancelled());
    drop(stream);
    assert!(cx.cancellation().is_cancelled(), "no task had to run for it");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_begins_to_wait_for_a_person_ends() {
    for way in WAYS {
        let written = Arc::new(Semaphore::new(2));
        let journal = Counting::new(InMemoryTurnJournal::default(), SlowDisk(written.clone()));
        let (pay, paid) = noting_tool("pay");
        let model = ScriptedModel::new().calls("pay", json!({"n": 1}));
        let host = host_of(&model)
            .stores(Stores::new().with_journal(journal))
            .tool(pay.needs_approval());
        let host = host.build().unwrap();
        let request = TurnRequest::new("s", "m", "pay");
        call_off(&host, request.clone(), way, settle()).await;
        assert_eq!((model.requests().len(), host.agent().approvals().len()), (1, 0));
        written.add_permits(9);
        let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
        assert_eq!(ending(&outcome), (&TurnStatus::Cancelled, NOT_FINISHED), "{way:?}");
        assert!(host.agent().approvals().is_empty() && paid.all().is_empty());
    }
}

/// A host that pays, with a journal on such a disk.
fn paying_onto(disk: SlowDisk) -> (AgentHost, Notes) {
    let (pay, paid) = noting_tool("pay");
    let host = host_of(&ScriptedModel::new().calls("pay", json!({"n": 1})).says("too late"))
        .stores(Stores::new().with_journal(Counting::new(InMemoryTurnJournal::default(), disk)))
        .tool(pay.effect(Effect::Mutating))
        .build()
        .unwrap();
    (host, paid)
}

#[tokio::test]
async fn a_mutating_call_that_waits_in_line_does_not_run_once_its_turn_is_cancelled() {
    let (work, mut handle) = mock_tool("work");
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .calls("work", json!({}))
        .says("worked");
    let host = host_of(&model).tool(work.max_concurrency(1)).build().unwrap();
    let agent = host.agent().clone();
    let first = tokio::spawn(async move { agent.ask("a", "work").await });
    let running = handle.next_call().await;
    let request = TurnRequest::new("b", "m", "work");
    call_off(&host, request.clone(), Way::Cancelled, settle()).await;
    let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!(
        ending(&outcome),
        (
            &TurnStatus::Cancelled,
            "This request was not finished: it was cancelled. Done before that: work (failed)."
        )
    );
    running.respond("ok");
    assert_eq!(first.await.unwrap().unwrap().text, "worked");
    assert_eq!(handle.running(), 0, "the second call never ran");
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_waits_in_line_does_not_run_once_the_time_is_up() {
    let (work, mut handle) = mock_tool("work");
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .calls("work", json!({}))
        .says("too late");
    let host = host_of(&model).tool(work.max_concurrency(1).time_limit(Duration::from_secs(600)));
    let host = host.build().unwrap();
    let agent = host.agent().clone();
    let _first = agent.stream("a", "work");
    let _running = handle.next_call().await;
    let request =
        TurnRequest::new("b", "m", "work").with_budget(Budget::default().with_max_wall_clock(Duration::from_secs(60)));
    let outcome = agent.run(request).await.unwrap();
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::WallClock), "too late")
    );
    assert_eq!(
        results(&model.requests()[2]),
        ["call_2: not run: cancelled before it began"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_waits_in_a_layer_does_not_run_once_its_turn_is_cancelled() {
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 1}))
        .says("paid")
        .calls("pay", json!({"n": 2}));
    let host = host_of(&model)
        .tool(pay.effect(Effect::Mutating))
        .tool_layer(RateLimitLayer::new(1, Duration::from_secs(60)))
        .build()
        .unwrap();
    host.agent().ask("a", "pay").await.unwrap();
    let request = TurnRequest::new("b", "m", "pay");
    call_off(&host, request.clone(), Way::Cancelled, settle()).await;
    let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(paid.all(), ["pay 1"], "the second waited a minute for its token");
}

#[tokio::test]
async fn a_mutating_call_does_not_run_when_its_turn_is_cancelled_while_its_start_is_written() {
    let written = Arc::new(Semaphore::new(2));
    let (host, paid) = paying_onto(SlowDisk(written.clone()));
    let request = TurnRequest::new("s", "m", "pay");
    call_off(&host, request.clone(), Way::Cancelled, settle()).await;
    written.add_permits(9);
    let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!((outcome.status, paid.all()), (TurnStatus::Cancelled, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_does_not_run_when_the_time_is_up_while_its_start_is_written() {
    let written = Arc::new(Semaphore::new(2));
    let (host, paid) = paying_onto(SlowDisk(written.clone()));
    let minute = Duration::from_secs(60);
    let request = TurnRequest::new("s", "m", "pay").with_budget(Budget::default().with_max_wall_clock(minute));
    let agent = host.agent().clone();
    let running = tokio::spawn(async move { agent.run(request).await });
    tokio::time::sleep(2 * minute).await;
    written.add_permits(9);
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(outcome.status, TurnStatus::Partial(BudgetLimit::WallClock));
    assert_eq!(paid.all(), Vec::<String>::new());
}

#[tokio::test]
async fn a_superseding_message_ends_a_turn_of_its_session_that_waits_for_a_person() {
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 1}))
        .calls("pay", json!({"n": 2}))
        .says("forgotten");
    let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
    let agent = host.agent();
    let other = agent.run(TurnRequest::new("other", "m", "pay")).await.unwrap();
    let parked = agent.run(TurnRequest::new("s", "one", "pay")).await.unwrap();
    assert_eq!(agent.approvals().len(), 2);
    let newer = TurnRequest::new("s", "two", "no, forget it").with_busy(BusyPolicy::Supersede);
    assert_eq!(agent.run(newer).await.unwrap().text, "forgotten");
    let left: Vec<_> = agent.approvals().into_iter().map(|ask| ask.turn).collect();
    assert_eq!(left, [other.turn]);
    let superseded = agent.outcome(&parked.turn).await.unwrap();
    assert_eq!(superseded.status, TurnStatus::Superseded);
    assert!(paid.all().is_empty());
}

#[tokio::test]
async fn a_message_whose_acceptance_the_host_does_not_wait_for_tells_its_caller() {
    let journal = Counting::new(InMemoryTurnJournal::default(), SlowDisk(Arc::new(Semaphore::new(0))));
    let host = host_of(&ScriptedModel::new())
        .stores(Stores::new().with_journal(journal))
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "hi").await });
    settle().await;
    host.shutdown(Duration::ZERO).await;
    let told = asking.await.unwrap();
    assert!(matches!(told, Err(TurnError::Halted)), "got {told:?}");
}

/// A tool whose interrupted calls still run, as far as it knows.
#[derive(Debug)]
struct StillRunning;

#[async_trait]
impl ToolExecutor for StillRunning {
    async fn execute(&self, _: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        std::future::pending().await
    }

    async fn recover(&self, _: &ToolInvokeRequest, _: &CallContext) -> Recovery {
        Recovery::Running
    }
}

/// A host that was given up while its turn made a call, started again.
async fn host_that_recovers(folder: &std::path::Path, request: &TurnRequest) -> AgentHost {
    let build = || {
        let registration = ToolRegistration::new("send", "Sends.", json!({"type": "object"}));
        let send = Tool::new(registration, StillRunning).effect(Effect::Mutating);
        let model = ScriptedModel::new().answers_with(|_| calls([("1", "send", "{}")]));
        host_of(&model).data_dir(folder).tool(send).build().unwrap()
    };
    let host = build();
    let stream = host.agent().stream_turn(request.clone());
    settle().await;
    host.shutdown(Duration::ZERO).await;
    drop((stream, host));
    settle().await;
    let host = build();
    assert_eq!(host.resume().await.unwrap().running, [request.turn_id()]);
    settle().await;
    host
}

#[tokio::test(start_paused = true)]
async fn asking_what_became_of_a_call_ends_with_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m", "send");
    let host = host_that_recovers(folder.path(), &request).await;
    let before = tokio::time::Instant::now();
    host.agent().cancel(&request.turn_id()).await.unwrap();
    let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(outcome.calls.len(), 1, "its outcome is unknown, and told");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn asking_what_became_of_a_call_goes_on_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m", "send");
    let host = host_that_recovers(folder.path(), &request).await;
    let before = tokio::time::Instant::now();
    host.shutdown(Duration::from_secs(5)).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    drop(host);
    let host = host_of(&ScriptedModel::new()).data_dir(folder.path()).build().unwrap();
    assert_eq!(host.resume().await.unwrap().running, [request.turn_id()]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_tells_turns_that_wait_for_a_person_from_those_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let build = |model: &ScriptedModel| {
        let pay = noting_tool("pay").0.needs_approval();
        host_of(model).data_dir(folder.path()).tool(pay).build().unwrap()
    };
    let host = build(&ScriptedModel::new().calls("pay", json!({"n": 1})).hangs());
    let parked = host.agent().run(TurnRequest::new("a", "m", "pay")).await.unwrap().turn;
    let request = TurnRequest::new("b", "m", "hi");
    let running = host.agent().stream_turn(request.clone());
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((running, host));
    let host = build(&ScriptedModel::new().hangs());
    let resumed = host.resume().await.unwrap();
    assert_eq!(
        (resumed.running, resumed.parked),
        (vec![request.turn_id()], vec![parked])
    );
    assert_eq!(host.resume().await.unwrap(), Resumed::default(), "they are taken over");
}
