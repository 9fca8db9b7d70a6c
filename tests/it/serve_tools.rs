//! Tools that a host runs for others over a bus: a call ends once, and its answer says what
//! became of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use rockbot_core::content::{Content, MediaPart, MediaSource};
use rockbot_core::messaging::{
    Bus, BusError, DeadLetters, Delivery, Disposition, Message, MessageEnvelope, MessagePublisher,
    MessageSubscriberExt, RequestClient, Subscription, headers,
};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, RemoteToolExecutor, Tool, ToolError, ToolErrorCode, ToolErrorMessage, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistration, remote_tool, tool,
};
use rockbot_core::{CallContext, CallId};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::tool::ToolLimits;
use rockbot_host::{AgentHost, AgentHostBuilder, MessageOptions, TurnPolicies};
use serde_json::json;
use tokio::time::sleep;

use crate::support::metrics::measured;
use crate::support::{Anything, host_of, noting_tool, request, results, settle};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

/// A host that runs its tools for others.
fn workshop(bus: &InProcessBus) -> AgentHostBuilder {
    AgentHost::builder("workshop")
        .chat(ScriptedModel::new())
        .shared_bus(Arc::new(bus.clone()))
        .serve_tools()
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// The tool `name` of the workshop, for another host.
fn remote(bus: &InProcessBus, name: &str, effect: Effect) -> Tool {
    let client = RequestClient::new(Arc::new(bus.clone()) as Arc<dyn Bus>, "agent");
    let mut registration = ToolRegistration::new(name, "Works elsewhere.", json!({"type": "object"}));
    registration.effect = effect;
    remote_tool(registration, RemoteToolExecutor::new(Arc::new(client)))
}

/// Everything that was answered under a topic, and how it was.
struct Answers {
    bus: InProcessBus,
    got: Arc<Mutex<Vec<Arc<MessageEnvelope>>>>,
    _listening: Subscription,
}

impl Answers {
    async fn of(bus: &InProcessBus, topic: &str) -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let taken = got.clone();
        let listener = move |delivery: Delivery| {
            taken.lock().unwrap().push(delivery.envelope);
            async { Disposition::Ack }
        };
        Self {
            bus: bus.clone(),
            got,
            _listening: bus.on(topic, "answers", listener).await.unwrap(),
        }
    }

    /// Asks for a call, to be answered under the topic that is listened to.
    async fn ask(&self, id: &str, call: &ToolInvokeRequest) {
        self.send(asking(id, call)).await;
    }

    async fn send(&self, envelope: MessageEnvelope) {
        self.bus.publish("tool.invoke", Arc::new(envelope)).await.unwrap();
    }

    /// The answers as `message type: content`.
    fn all(&self) -> Vec<String> {
        let line = |answer: &Arc<MessageEnvelope>| match &*answer.message_type {
            ToolErrorMessage::TYPE => {
                let error: ToolErrorMessage = answer.payload().unwrap();
                format!("{} failed: {:?}: {}", error.tool_call_id, error.code, error.message)
            }
            _ => {
                let response: ToolInvokeResponse = answer.payload().unwrap();
                let how = if response.is_error { "says an error" } else { "says" };
                format!("{} {how}: {}", response.tool_call_id, response.content)
            }
        };
        self.got.lock().unwrap().iter().map(line).collect()
    }
}

fn asking(id: &str, call: &ToolInvokeRequest) -> MessageEnvelope {
    MessageEnvelope::of(call)
        .unwrap()
        .with_id(id)
        .with_source("agent")
        .with_reply_to("answers")
}

#[tokio::test(start_paused = true)]
async fn a_model_uses_a_tool_of_another_host() {
    let bus = InProcessBus::new();
    let seen = Arc::new(Mutex::new(None));
    let noted = seen.clone();
    let add = tool("add", move |Anything { n }: Anything, cx: CallContext| {
        let key = cx.idempotency_key(&CallId::from("call_1"));
        *noted.lock().unwrap() = Some((cx.principal().to_string(), key, cx.time_left()));
        async move { format!("{n} and one is {}", n + 1) }
    });
    let _workshop = started(workshop(&bus).tool(add.description("Adds one."))).await;
    let model = ScriptedModel::new()
        .calls("add", json!({"n": 7}))
        .calls("add", json!({"n": "seven"}))
        .says("Eight.");
    let agent = host_of(&model)
        .tool(remote(&bus, "add", Effect::Mutating))
        .build()
        .unwrap();
    let outcome = agent
        .agent()
        .run(rockbot_core::turn::TurnRequest::new("s", "1", "Add!"))
        .await
        .unwrap();
    assert_eq!(outcome.text, "Eight.");
    let results = results(&model.requests()[2]);
    assert_eq!(results[0], "call_1: 7 and one is 8");
    assert!(
        results[1].starts_with("call_2: ") && results[1].contains("`n`"),
        "{results:?}"
    );
    let (principal, key, left) = seen.lock().unwrap().clone().unwrap();
    assert_eq!((principal.as_str(), key), ("local", format!("{}/call_1", outcome.turn)));
    assert_eq!(
        left,
        Some(59 * SECOND),
        "the answer has a second of the caller's minute"
    );
}

/// A workshop with a tool for each kind of end.
fn tools() -> Vec<Tool> {
    let failing = |name, code: ToolErrorCode| {
        let fails = move |_: Anything| async move { Err::<String, _>(ToolError::new(code, "no luck")) };
        tool(name, fails).description("Fails.").pure()
    };
    let slow = |name| {
        let waits = |_: Anything| async {
            sleep(LONG).await;
            "late"
        };
        tool(name, waits).description("Takes long.").time_limit(SECOND)
    };
    let panics = tool("panics", |_: Anything| async {
        "sk-canary".parse::<u32>().unwrap().to_string()
    });
    vec![
        noting_tool("works").0,
        failing("fails", ToolErrorCode::ExecutionFailed),
        failing("refuses", ToolErrorCode::Denied),
        slow("slow").pure(),
        slow("slow_and_mutating"),
        panics.description("Breaks down.").pure(),
        noting_tool("pays").0.needs_approval(),
        Tool::new(
            ToolRegistration::new("admits", "Says that it failed.", json!({"type": "object"})),
            Admits,
        )
        .pure(),
    ]
}

/// Fails in a response of its own.
#[derive(Debug)]
struct Admits;

#[async_trait::async_trait]
impl rockbot_core::tool::ToolExecutor for Admits {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let mut response = request.succeed("I could not");
        response.is_error = true;
        Ok(response)
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_says_how_the_call_ended_and_every_call_is_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let bus = InProcessBus::new();
    let answers = Answers::of(&bus, "answers").await;
    let host = tools().into_iter().fold(workshop(&bus), AgentHostBuilder::tool);
    let _workshop = started(host).await;
    let calls = [
        ("works", "{}"),
        ("works", r#"{"n":"x"}"#),
        ("works", "no JSON"),
        ("nothing", "{}"),
        ("fails", "{}"),
        ("refuses", "{}"),
        ("slow", "{}"),
        ("slow_and_mutating", "{}"),
        ("panics", "{}"),
        ("pays", "{}"),
        ("admits", "{}"),
    ];
    for (n, (name, arguments)) in calls.into_iter().enumerate() {
        answers
            .ask(&n.to_string(), &request(&n.to_string(), name, arguments))
            .await;
        sleep(2 * SECOND).await;
    }
    insta::assert_snapshot!(answers.all().join("\n"));
    let got = answers.got.lock().unwrap().clone();
    for (n, answer) in got.iter().enumerate() {
        assert_eq!(answer.correlation_id.as_deref(), Some(&*n.to_string()));
        assert_eq!(
            (&*answer.source, answer.destination.as_deref()),
            ("workshop", Some("agent"))
        );
        assert_eq!(answer.headers[headers::CONTENT_TRUST], "tool-output");
    }
    let retryable: Vec<_> = got
        .iter()
        .filter_map(|answer| answer.payload::<ToolErrorMessage>().ok())
        .filter(|error| error.is_retryable)
        .map(|error| error.tool_name.to_string())
        .collect();
    assert_eq!(retryable, ["slow"]);

    let measured = measured(&snapshotter);
    let count = |name: &str, tool: &str, status: &str| {
        measured
            .get(&format!("{name} tool_name={tool} status={status}"))
            .copied()
    };
    for (tool, status, expected) in [
        ("works", "success", 1),
        ("works", "error", 2),
        ("_unknown", "error", 1),
        ("fails", "error", 1),
        ("refuses", "error", 1),
        ("slow", "timeout", 1),
        ("slow_and_mutating", "timeout", 1),
        ("panics", "error", 1),
        ("pays", "error", 1),
        ("admits", "error", 1),
    ] {
        let counted =
            ["rockbot.tool.invocations", "rockbot.tool.invoke.duration"].map(|name| count(name, tool, status));
        assert_eq!(counted, [Some(expected); 2], "{tool} {status} in {measured:#?}");
    }
    assert!(bus.dead_letters(10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_agent_itself_are_counted_alike() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let model = ScriptedModel::new()
        .calls_all([("works", json!({})), ("fails", json!({}))])
        .calls("invented_by_the_model", json!({}))
        .says("Done.");
    let host = tools()
        .into_iter()
        .fold(host_of(&model), AgentHostBuilder::tool)
        .build()
        .unwrap();
    host.agent().ask("s", "Go!").await.unwrap();
    let mut counted = measured(&snapshotter);
    counted.retain(|name, _| name.starts_with("rockbot.tool.invocations"));
    let once = |labels: &str| (format!("rockbot.tool.invocations {labels}"), 1);
    let expected = BTreeMap::from([
        once("tool_name=works status=success"),
        once("tool_name=fails status=error"),
        once("tool_name=_unknown status=error"),
    ]);
    assert_eq!(counted, expected);
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_to_the_topic_for_all_when_none_is_named() {
    let bus = InProcessBus::new();
    let answers = Answers::of(&bus, "tool.result").await;
    let _workshop = started(workshop(&bus).tool(noting_tool("works").0)).await;
    let mut call = asking("1", &request("1", "works", "{}"));
    call.reply_to = None;
    answers.send(call).await;
    let mut unknown = asking("2", &request("2", "nothing", "{}"));
    unknown.reply_to = None;
    answers.send(unknown).await;
    let loose = json!({"toolCallId": "3", "toolName": "works", "arguments": null, "sessionId": null});
    answers
        .send(MessageEnvelope::new(ToolInvokeRequest::TYPE, loose.to_string()))
        .await;
    settle().await;
    let expected = [
        "1 says: works is done",
        "2 failed: ToolNotFound",
        "3 says: works is done",
    ];
    for (answer, expected) in answers.all().iter().zip(expected) {
        assert!(answer.starts_with(expected), "{answer}");
    }
    assert_eq!(answers.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_twice_runs_once() {
    let bus = InProcessBus::new();
    let answers = Answers::of(&bus, "answers").await;
    let (work, mut handle) = mock_tool("work");
    let _workshop = started(workshop(&bus).tool(work)).await;
    let call = request("1", "work", "{}");
    answers.ask("m", &call).await;
    answers.ask("m", &call).await;
    let running = handle.next_call().await;
    settle().await;
    running.respond("done");
    settle().await;
    answers.ask("m", &call).await;
    sleep(LONG).await;
    assert_eq!((handle.started(), answers.all()), (1, vec!["1 says: done".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_handlers_may_runs_once() {
    let bus = InProcessBus::new();
    let answers = Answers::of(&bus, "answers").await;
    let (work, mut handle) = mock_tool("work");
    let host = workshop(&bus)
        .tool(work.time_limit(LONG))
        .message_options(MessageOptions::new().with_handler_time_limit(SECOND));
    let _workshop = started(host).await;
    answers.ask("m", &request("1", "work", "{}")).await;
    let running = handle.next_call().await;
    sleep(LONG / 2).await;
    running.respond("done");
    sleep(LONG).await;
    assert_eq!((handle.started(), answers.all()), (1, vec!["1 says: done".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_cannot_be_sent_is_not_run_again() {
    let mut options = InProcessBusOptions::default();
    options.max_message_bytes = 1000;
    let bus = InProcessBus::with_options(options);
    let answers = Answers::of(&bus, "answers").await;
    let (work, mut handle) = mock_tool("work");
    let _workshop = started(workshop(&bus).tool(work)).await;
    answers.ask("m", &request("1", "work", "{}")).await;
    handle.next_call().await.respond("x".repeat(2000));
    sleep(LONG).await;
    assert_eq!(handle.started(), 1);
    let told = answers.all();
    let expected = "1 failed: ExecutionFailed: the call has run, and its result is lost: a message of ";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_stopping_host_cuts_off_is_answered_and_not_given_to_another_one() {
    for (effect, code) in [(Effect::Mutating, "OutcomeUnknown"), (Effect::Pure, "ExecutionFailed")] {
        let bus = InProcessBus::new();
        let answers = Answers::of(&bus, "answers").await;
        let (work, mut handle) = mock_tool("work");
        let (other, other_handle) = mock_tool("work");
        let mut work = work.time_limit(LONG);
        work.registration.effect = effect;
        let one = started(workshop(&bus).tool(work)).await;
        answers.ask("m", &request("1", "work", "{}")).await;
        let call = handle.next_call().await;
        let _two = started(workshop(&bus).tool(other)).await;
        one.shutdown(SECOND).await;
        sleep(LONG).await;
        drop(call);
        assert_eq!((handle.cancelled(), other_handle.started()), (1, 0));
        let told = answers.all();
        let expected = format!("1 failed: {code}: the worker stopped before the call had ended");
        assert!(told.len() == 1 && told[0].starts_with(&expected), "{told:?}");
        assert_eq!(bus.dead_letters(10).await.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_time_and_the_hosts_limits_hold() {
    let bus = InProcessBus::new();
    let answers = Answers::of(&bus, "answers").await;
    let (work, mut handle) = mock_tool("work");
    let limits = ToolLimits::default().with_max_concurrency(1);
    let host = workshop(&bus)
        .tool(work.pure().time_limit(LONG))
        .policies(TurnPolicies::new().with_tool_limits(limits));
    let _workshop = started(host).await;
    let hasty = asking("1", &request("1", "work", "{}")).with_header(headers::TIMEOUT_MS, "1500");
    answers.send(hasty).await;
    answers.ask("2", &request("2", "work", "{}")).await;
    let first = handle.next_call().await;
    settle().await;
    assert_eq!(handle.started(), 1, "the second one waits for a place");
    assert_eq!(first.cx.time_left(), Some(Duration::from_millis(1350)));
    handle.next_call().await.respond("done");
    settle().await;
    let told = answers.all();
    assert!(
        told[0].starts_with("1 failed: Timeout: the tool timed out after 1.35s"),
        "{told:?}"
    );
    assert_eq!(told[1..], ["2 says: done"]);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_is_closed_is_not_asked_for_ever() {
    let bus = InProcessBus::new();
    let (work, mut handle) = mock_tool("work");
    let _workshop = started(workshop(&bus).tool(work)).await;
    bus.publish("tool.invoke", Arc::new(asking("1", &request("1", "work", "{}"))))
        .await
        .unwrap();
    let call = handle.next_call().await;
    let _ = bus.close(SECOND).await;
    call.respond("too late");
    sleep(LONG).await;
    let again = bus
        .publish("tool.invoke", Arc::new(asking("2", &request("2", "work", "{}"))))
        .await;
    assert!(matches!(again, Err(BusError::Closed)));
    assert_eq!(handle.started(), 1);
}

#[tokio::test]
async fn an_image_of_a_tool_in_another_program_reaches_the_model() {
    let bus = InProcessBus::new();
    let plot = tool("plot", |_: Anything| async {
        Content::from("The plot:").with_image(MediaPart::bytes("image/png", vec![4, 5, 6]).with_name("plot.png"))
    });
    let _workshop = started(workshop(&bus).tool(plot.pure())).await;
    let model = ScriptedModel::new().calls("plot", json!({})).says("It rises.");
    let host = started(
        AgentHost::builder("agent")
            .chat(model.clone())
            .shared_bus(Arc::new(bus.clone()))
            .tool(remote(&bus, "plot", Effect::Pure)),
    )
    .await;
    host.agent().ask("s", "Does it rise?").await.unwrap();
    let asked = model.requests();
    let result = asked[1]
        .messages
        .iter()
        .find(|message| message.tool_call_id.is_some())
        .unwrap();
    assert_eq!(result.content.text(), "The plot:");
    let shown = result.content.media().next().unwrap();
    let name = shown.name.as_deref();
    assert_eq!(
        (&shown.source, name),
        (&MediaSource::Bytes(vec![4, 5, 6].into()), Some("plot.png"))
    );
}
