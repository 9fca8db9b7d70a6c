//! The guard around every tool call.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot_core::context::Grant;
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, InMemoryToolRegistry, Owner, Recovery, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistration, ToolRegistry, tool,
};
use rockbot_core::{BoxError, CallContext, CallId, SessionId};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};
use serde_json::json;

use crate::support::{Anything, calls, host_of, noting_tool, request, results, settle};

fn dispatcher(tools: impl IntoIterator<Item = Tool>, limits: ToolLimits) -> ToolDispatcher {
    let registry = InMemoryToolRegistry::new();
    let owner = Owner::new("tests");
    for tool in tools {
        registry.register(&owner, tool).unwrap();
    }
    ToolDispatcher::new(Arc::new(registry), limits)
}

fn cx() -> CallContext {
    CallContext::new("session")
}

fn outcome(response: &ToolInvokeResponse) -> (bool, Option<ToolErrorCode>) {
    (response.is_error, response.code)
}

/// Breaks down in every way in which a tool can.
#[derive(Debug)]
struct Broken(When);

#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    AtOnce,
    Later,
    AfterItsResult,
    Dropped,
    AskedForItsEffect,
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[async_trait]
impl ToolExecutor for Broken {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let _late = (self.0 == When::AfterItsResult).then_some(PanicsOnDrop);
        match self.0 {
            When::AtOnce => panic!("at once"),
            When::Later => {
                tokio::task::yield_now().await;
                panic!("later")
            }
            When::Dropped => {
                let _guard = PanicsOnDrop;
                std::future::pending().await
            }
            When::AfterItsResult | When::AskedForItsEffect => Ok(request.succeed("fine")),
        }
    }

    fn effect_of(&self, _: &ToolInvokeRequest) -> Option<Effect> {
        assert_ne!(self.0, When::AskedForItsEffect);
        None
    }

    async fn recover(&self, _: &ToolInvokeRequest, _: &CallContext) -> Recovery {
        panic!("asked what became of a call")
    }
}

fn broken(name: &str, when: When) -> Tool {
    let registration = ToolRegistration::new(name, "Breaks down.", json!({"type": "object"}));
    Tool::new(registration, Broken(when))
        .pure()
        .time_limit(Duration::from_secs(1))
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_a_failed_call_and_the_next_call_works() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (good, notes) = noting_tool("good");
    let limits = ToolLimits::default().with_max_concurrency(1);
    let faults = [
        ("at_once", When::AtOnce),
        ("later", When::Later),
        ("after_its_result", When::AfterItsResult),
        ("when_dropped", When::Dropped),
    ];
    let tools = faults.map(|(name, when)| broken(name, when));
    let dispatcher = dispatcher(tools.into_iter().chain([good]), limits);

    for (name, _) in faults {
        let response = dispatcher.call(request("1", name, "{}"), &cx()).await;
        assert_eq!(
            outcome(&response),
            (true, Some(ToolErrorCode::ExecutionFailed)),
            "{name}"
        );
        assert_eq!(
            (response.tool_call_id.as_str(), response.tool_name.as_str()),
            ("1", name)
        );
    }
    let response = dispatcher.call(request("2", "good", "{}"), &cx()).await;
    assert_eq!(outcome(&response), (false, None));
    assert_eq!(notes.all(), ["good 0"]);

    let mut counted = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let (_, key) = key.into_parts();
        if let DebugValue::Counter(count) = value {
            let labels: Vec<_> = key.labels().map(|label| label.value().to_owned()).collect();
            counted.push((key.name().to_owned(), labels.join(" "), count));
        }
    }
    counted.sort();
    let once = |labels: &str| ("rockbot.tool.invocations".to_owned(), labels.to_owned(), 1);
    let expected = [
        once("after_its_result error"),
        once("at_once error"),
        once("good success"),
        once("later error"),
        once("when_dropped error"),
    ];
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn a_tool_that_panics_when_it_is_asked_about_a_call_does_not_end_the_turn() {
    let model = ScriptedModel::new().calls("broken", json!({})).says("done");
    let host = host_of(&model)
        .tool(broken("broken", When::AskedForItsEffect))
        .build()
        .unwrap();
    assert_eq!(host.agent().ask("s", "go").await.unwrap().text, "done");

    let dispatcher = dispatcher([broken("broken", When::AtOnce)], ToolLimits::default());
    let recovery = dispatcher.recover(&request("1", "broken", "{}"), &cx()).await;
    assert_eq!(recovery, Recovery::Unknown);
}

#[tokio::test]
async fn a_turn_goes_on_after_a_tool_that_panicked() {
    let model = ScriptedModel::new()
        .calls("broken", json!({}))
        .says("it is broken")
        .says("still here");
    let host = host_of(&model).tool(broken("broken", When::Later)).build().unwrap();
    assert_eq!(host.agent().ask("s", "go").await.unwrap().text, "it is broken");
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: the tool failed unexpectedly; try another way"]
    );
    assert_eq!(host.agent().ask("s", "again").await.unwrap().text, "still here");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_times_out_and_its_future_is_dropped() {
    let (tool, handle) = mock_tool("slow");
    let dispatcher = dispatcher(
        [tool.pure().time_limit(Duration::from_millis(100))],
        ToolLimits::default(),
    );
    let before = tokio::time::Instant::now();
    let response = dispatcher.call(request("1", "slow", "{}"), &cx()).await;
    let took = before.elapsed();
    assert_eq!(outcome(&response), (true, Some(ToolErrorCode::Timeout)));
    assert!(response.code.unwrap().retry_helps());
    assert!((100..=150).contains(&took.as_millis()), "took {took:?}");
    assert_eq!((handle.started(), handle.cancelled(), handle.running()), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_time_out_of_a_mutating_call_says_that_it_may_have_taken_effect() {
    let (tool, _handle) = mock_tool("send");
    let dispatcher = dispatcher([tool.time_limit(Duration::from_secs(1))], ToolLimits::default());
    let response = dispatcher.call(request("1", "send", "{}"), &cx()).await;
    assert!(
        response.content.text().contains("may or may not have taken effect"),
        "{}",
        response.content
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_taught_and_the_tool_is_not_called() {
    let (typed, typed_notes) = noting_tool("typed");
    let (foreign, handle) = mock_tool("foreign");
    let dispatcher = dispatcher([typed, foreign.pure()], ToolLimits::default());
    let deep = format!("{}{}", r#"{"n":"#.repeat(10_000), "}".repeat(10_000));
    let large = format!(r#"{{"n":"{}"}}"#, "a".repeat(1 << 20));
    let malformed = [
        "",
        "null",
        "[]",
        "{",
        "7",
        "\"n\"",
        "{\"n\":1e999}",
        "{\"n\":1,\"n\":2}",
        "{\"n\":\"\\ud800\"}",
        "{} {}",
        &deep,
        &large,
    ];
    for arguments in malformed {
        for name in ["typed", "foreign"] {
            let response = dispatcher.call(request("1", name, arguments), &cx()).await;
            let shown = arguments.get(..30).unwrap_or(arguments);
            assert_eq!(
                outcome(&response),
                (true, Some(ToolErrorCode::InvalidArguments)),
                "{name} with {shown}: {}",
                response.content
            );
            assert!(
                response.content.text().contains(name),
                "{name} with {shown}: {}",
                response.content
            );
            assert!(response.content.text_len() < 4_000, "a short lesson for {shown}");
        }
    }
    assert_eq!((typed_notes.all().len(), handle.started()), (0, 0));
}

/// Returns its arguments.
#[derive(Debug)]
struct Repeat;

#[async_trait]
impl ToolExecutor for Repeat {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let arguments = request.arguments.to_string();
        Ok(request.succeed(arguments))
    }
}

/// Tells the weather of some days.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Days {
    city: String,
    #[serde(default)]
    days: i64,
}

#[tokio::test]
async fn nulls_for_optional_arguments_are_left_out_of_reads_and_those_for_required_ones_are_errors() {
    let repeat = Tool::new(ToolRegistration::of::<Days>("repeat").with_effect(Effect::Pure), Repeat);
    let typed = tool("typed", async |Days { city, days }: Days| format!("{city} {days}")).effect(Effect::Pure);
    let tools = dispatcher([repeat, typed], ToolLimits::default());
    let call = async |tool, arguments: serde_json::Value| {
        let called = request("1", tool, &arguments.to_string());
        tools.call(called, &cx()).await
    };
    let left = call("repeat", json!({"city": "Oslo", "days": null})).await;
    assert_eq!(left.content.text(), r#"{"city":"Oslo"}"#);
    let left = call("typed", json!({"city": "Oslo", "days": null})).await;
    assert_eq!(left.content.text(), "Oslo 0");
    for tool in ["repeat", "typed"] {
        let refused = call(tool, json!({"city": null, "days": null})).await;
        assert_eq!(outcome(&refused), (true, Some(ToolErrorCode::InvalidArguments)));
        let text = refused.content.text().into_owned();
        assert!(text.contains("`city` must be a string, got null"), "{text}");
        assert!(!text.contains("`days`"), "{text}");
    }
}

#[tokio::test]
async fn nulls_in_a_call_that_changes_something_are_errors_since_a_filter_may_be_meant() {
    for effect in [Effect::Mutating, Effect::Idempotent] {
        let repeat = Tool::new(ToolRegistration::of::<Days>("repeat").with_effect(effect), Repeat);
        let typed = tool("typed", async |Days { city, days }: Days| format!("{city} {days}")).effect(effect);
        let tools = dispatcher([repeat, typed], ToolLimits::default());
        for tool in ["repeat", "typed"] {
            let called = request("1", tool, &json!({"city": "Oslo", "days": null}).to_string());
            let refused = tools.call(called, &cx()).await;
            assert_eq!(outcome(&refused), (true, Some(ToolErrorCode::InvalidArguments)));
            let text = refused.content.text().into_owned();
            assert!(
                text.contains("`days` must be an integer, got null; leave it out instead"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_wrong_type_is_explained_by_name_and_the_model_can_correct_it() {
    let (tool, notes) = noting_tool("typed");
    let model = ScriptedModel::new()
        .calls("typed", json!({"n": "seven"}))
        .calls("typed", json!({"n": 7}))
        .says("done");
    let host = host_of(&model).tool(tool).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let lesson = &results(&model.requests()[1])[0];
    assert!(lesson.contains('n') && lesson.contains("integer"), "{lesson}");
    assert_eq!(notes.all(), ["typed 7"]);
}

#[tokio::test]
async fn an_unknown_tool_is_told_with_the_tools_that_exist() {
    let model = ScriptedModel::new().calls("loook", json!({})).says("done");
    let (look, notes) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert!(outcome.calls[0].is_error);
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: there is no tool `loook`. The tools are: look"]
    );
    assert!(notes.all().is_empty());
}

#[tokio::test]
async fn a_call_that_needs_approval_is_refused_without_the_grant_for_it() {
    let (tool, notes) = noting_tool("pay");
    let dispatcher = dispatcher([tool.needs_approval()], ToolLimits::default());
    let grant = |call: &str, tool: &str, arguments: &str| {
        cx().with_grants([Grant::new(CallId::from(call), Grant::args_hash(tool, arguments))])
    };
    let others = [
        cx(),
        grant("2", "pay", r#"{"n":1}"#),
        grant("1", "pay", r#"{"n":2}"#),
        grant("1", "other", r#"{"n":1}"#),
    ];
    for cx in others {
        let response = dispatcher.call(request("1", "pay", r#"{"n":1}"#), &cx).await;
        assert_eq!(outcome(&response), (true, Some(ToolErrorCode::ApprovalRequired)));
    }
    assert!(notes.all().is_empty());
    let granted = grant("1", "pay", r#"{"n":1}"#);
    let response = dispatcher.call(request("1", "pay", r#"{"n":1}"#), &granted).await;
    assert_eq!(outcome(&response), (false, None));
    assert_eq!(notes.all(), ["pay 1"]);
}

#[tokio::test]
async fn equal_call_ids_of_one_answer_and_of_later_answers_are_told_apart() {
    let (tool, notes) = noting_tool("look");
    let again = [("0", "look", r#"{"n":3}"#), ("0-2", "look", r#"{"n":4}"#)];
    let model = ScriptedModel::new()
        .answers(calls([("0", "look", r#"{"n":1}"#), ("0", "look", r#"{"n":2}"#)]))
        .answers(calls(again))
        .says("done");
    let host = host_of(&model).tool(tool).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    let ids: Vec<_> = outcome.calls.iter().map(|call| call.call.as_str()).collect();
    assert_eq!(ids, ["0", "0-2", "0-3", "0-2-2"]);
    assert_eq!(notes.all(), ["look 1", "look 2", "look 3", "look 4"]);
    let last = &model.requests()[2];
    let wanted: Vec<_> = last.messages.iter().flat_map(|message| &message.tool_calls).collect();
    let wanted: Vec<_> = wanted.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(wanted, ids, "the model sees its calls under the ids of their results");
}

/// Takes several polls, in several kinds of waiting.
fn winding_tool(done: Arc<AtomicUsize>) -> Tool {
    let run = move |_: Anything| {
        let done = done.clone();
        async move {
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            done.fetch_add(1, Ordering::SeqCst);
            "arrived"
        }
    };
    tool("wind", run)
        .description("Takes a while.")
        .pure()
        .max_concurrency(1)
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_leaks_nothing() {
    let done = Arc::new(AtomicUsize::new(0));
    let limits = ToolLimits::default().with_max_concurrency(1);
    let dispatcher = dispatcher([winding_tool(done.clone())], limits);
    let mut polls = 0;
    let mut finished = false;
    while !finished {
        polls += 1;
        assert!(polls < 50, "the call ends");
        let before = done.load(Ordering::SeqCst);
        finished = poll_and_drop(dispatcher.call(request("1", "wind", "{}"), &cx()), polls).await;
        settle().await;
        let late = done.load(Ordering::SeqCst) - before;
        assert_eq!(
            late,
            usize::from(finished),
            "a dropped call does nothing later ({polls} polls)"
        );

        let next = dispatcher.call(request("2", "wind", "{}"), &cx()).await;
        assert_eq!(next.content, "arrived", "its place is free again after {polls} polls");
        assert_eq!(dispatcher.registry().snapshot().entries().len(), 1);
    }
    assert!(polls > 6, "every point of waiting was tried");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_for_a_place_gives_its_place_in_the_line_back() {
    let (tool, mut handle) = mock_tool("look");
    let dispatcher = dispatcher([tool.pure().max_concurrency(1)], ToolLimits::default());
    let cx = cx();
    let holding = dispatcher.call(request("1", "look", "{}"), &cx);
    let waiting = dispatcher.call(request("2", "look", "{}"), &cx);
    let (first, (), third) = tokio::join!(
        holding,
        async {
            assert!(!poll_and_drop(waiting, 3).await);
            handle.next_call().await.respond("first");
            handle.next_call().await.respond("third");
        },
        dispatcher.call(request("3", "look", "{}"), &cx),
    );
    assert_eq!((&*first.content.text(), &*third.content.text()), ("first", "third"));
    assert_eq!(handle.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_passes_while_it_waits_for_a_place_is_not_run() {
    let (pay, mut handle) = mock_tool("pay");
    let dispatcher = dispatcher([pay], ToolLimits::default().with_max_concurrency(1));
    let holder = cx();
    let second = Duration::from_secs(1);
    let hurried = cx().with_deadline(tokio::time::Instant::now() + second);
    let late = cx().with_deadline(tokio::time::Instant::now());
    let (first, not_run) = tokio::join!(
        async {
            let holding = dispatcher.call(request("1", "pay", "{}"), &holder);
            let (held, ()) = tokio::join!(holding, async {
                let call = handle.next_call().await;
                tokio::time::sleep(second + second / 2).await;
                call.respond("paid");
            });
            held
        },
        dispatcher.call(request("2", "pay", "{}"), &hurried),
    );
    assert_eq!(first.content, "paid");
    assert_eq!(not_run.content, "not run: no time was left for it");
    assert!(not_run.retry_helps(), "it did not begin, so it may be asked for again");
    // Nor is one that comes too late for a free place.
    let not_run = dispatcher.call(request("3", "pay", "{}"), &late).await;
    assert_eq!(not_run.content, "not run: no time was left for it");
    assert_eq!(handle.started(), 1);
}

#[tokio::test]
async fn a_time_out_of_the_tools_own_is_judged_by_the_effect_of_the_call() {
    let slow = || async { Err::<String, BoxError>(std::io::Error::from(std::io::ErrorKind::TimedOut).into()) };
    let look = tool("look", move |_: Anything| slow()).description("Looks.").pure();
    let pay = tool("pay", move |_: Anything| slow()).description("Pays.");
    let dispatcher = dispatcher([look, pay], ToolLimits::default());
    let looked = dispatcher.call(request("1", "look", "{}"), &cx()).await;
    assert_eq!(outcome(&looked), (true, Some(ToolErrorCode::Timeout)));
    assert!(looked.retry_helps());
    let paid = dispatcher.call(request("2", "pay", "{}"), &cx()).await;
    assert_eq!(outcome(&paid), (true, Some(ToolErrorCode::OutcomeUnknown)));
    assert!(!paid.retry_helps());
}

/// Polls `future` up to `polls` times and drops it. Returns whether it ended.
async fn poll_and_drop(future: impl Future, polls: usize) -> bool {
    let mut future: Pin<Box<dyn Future<Output = _>>> = Box::pin(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_calls_with_equal_ids_in_two_sessions_never_mix() {
    /// Tells who asked, after giving others the chance to get in between.
    #[derive(Debug)]
    struct Echo;

    #[async_trait]
    impl ToolExecutor for Echo {
        async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
            for _ in 0..request.arguments.len() % 7 {
                tokio::task::yield_now().await;
            }
            let told = format!("{} {} {}", cx.session(), request.session_id, request.arguments);
            Ok(request.succeed(told))
        }
    }

    let registration = ToolRegistration::new("echo", "Echoes.", json!({"type": "object"}));
    let dispatcher = Arc::new(dispatcher(
        [Tool::new(registration, Echo).pure()],
        ToolLimits::default(),
    ));
    let call = |index: usize| {
        let dispatcher = dispatcher.clone();
        let session = SessionId::from(if index.is_multiple_of(2) { "even" } else { "odd" });
        let call = ToolInvokeRequest::new(
            CallId::from(format!("call_{}", index / 2 % 10)),
            "echo",
            format!(r#"{{"n":{}}}"#, "1".repeat(index % 13 + 1)),
        )
        .with_session_id(session.clone());
        tokio::spawn(async move {
            let expected = call.clone().succeed(format!("{session} {session} {}", call.arguments));
            let response = dispatcher.call(call, &CallContext::new(session)).await;
            assert_eq!(response, expected);
        })
    };
    let running: Vec<_> = (0..1_000).map(call).collect();
    for call in running {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn an_executor_cannot_answer_another_call() {
    #[derive(Debug)]
    struct Liar;

    #[async_trait]
    impl ToolExecutor for Liar {
        async fn execute(
            &self,
            mut request: ToolInvokeRequest,
            _: &CallContext,
        ) -> Result<ToolInvokeResponse, ToolError> {
            request.tool_call_id = "another".into();
            request.tool_name = "another".into();
            Ok(request.succeed("mine"))
        }
    }

    let registration = ToolRegistration::new("liar", "Lies.", json!({"type": "object"}));
    let dispatcher = dispatcher([Tool::new(registration, Liar)], ToolLimits::default());
    let response = dispatcher.call(request("1", "liar", "{}"), &cx()).await;
    assert_eq!(response, request("1", "liar", "{}").succeed("mine"));
}

#[tokio::test]
async fn an_error_of_a_tool_is_told_to_the_model_without_its_source() {
    let fail = |_: Anything| async move {
        let source: BoxError = "password=hunter2".into();
        Err::<String, _>(ToolError::execution_failed("the mail server is down").with_source(source))
    };
    let dispatcher = dispatcher([tool("mail", fail).description("Fails.")], ToolLimits::default());
    let response = dispatcher.call(request("1", "mail", "{}"), &cx()).await;
    assert_eq!(response.content, "the mail server is down");
}

#[tokio::test]
async fn a_tool_registered_during_a_turn_is_appended_to_what_the_model_sees() {
    let model = ScriptedModel::new()
        .calls("grow", json!({}))
        .calls("zoom", json!({}))
        .says("done");
    let registry = Arc::new(InMemoryToolRegistry::new());
    let (zoom, notes) = noting_tool("zoom");
    let (late, _) = noting_tool("a_late_one");
    let grown = AtomicBool::new(false);
    let grow = {
        let registry = registry.clone();
        let owner = Owner::new("tests");
        move |_: Anything| {
            if !grown.swap(true, Ordering::SeqCst) {
                registry.register(&owner, zoom.clone()).unwrap();
                registry.register(&owner, late.clone()).unwrap();
            }
            async { "grown" }
        }
    };
    let host = host_of(&model)
        .registry(registry.clone())
        .tool(tool("grow", grow).description("Adds tools."))
        .build()
        .unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let names: Vec<Vec<_>> = model
        .requests()
        .iter()
        .map(|request| request.tools.names().map(ToString::to_string).collect())
        .collect();
    assert_eq!(
        names,
        [
            vec!["grow"],
            vec!["grow", "zoom", "a_late_one"],
            vec!["grow", "zoom", "a_late_one"]
        ]
    );
    assert_eq!(notes.all(), ["zoom 0"]);
}

#[tokio::test]
async fn a_call_with_a_models_namespace_before_the_name_finds_its_tool() {
    let (look, looked) = noting_tool("look");
    let model = ScriptedModel::new()
        .calls("functions.look", json!({"n": 1}))
        .calls("elsewhere.look", json!({"n": 2}))
        .says("seen");
    let host = host_of(&model).tool(look).build().unwrap();
    let outcome = host.agent().ask("s", "Look.").await.unwrap();
    assert_eq!(looked.all(), ["look 1"]);
    assert!(outcome.calls[1].is_error, "{:?}", outcome.calls);
}
