//! Tools of tool services: from a descriptor to the answer, and whatever goes wrong in between.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot::tool_services::{
    DescriptorFolder, ReplyParts, RunningToolService, TooManyRequests, ToolService, ToolServiceServer, ToolServices,
};
use rockbot_core::messaging::{
    Bus, DeadLetters, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt, RetryPolicy,
    Subscription,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolErrorCode;
use rockbot_core::turn::TurnProgress;
use rockbot_core::{BoxError, CallContext, Principal};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{collect, host_of, noting_tool, request, results, settle};

const SECOND: Duration = Duration::from_secs(1);

const SERVICE: &str = r#"{
    "id": "joke-service",
    "request-queue": "non-persistent://tg/request/joke",
    "response-queue": "non-persistent://tg/response/joke",
    "config-params": [{"name": "style", "required": false}]
}"#;

/// The descriptor of a tool of the joke service.
fn tool_of(name: &str, effect: &str) -> String {
    json!({
        "type": "tool-service",
        "name": name,
        "description": "Tell a joke on a given topic",
        "service": "joke-service",
        "style": "pun",
        "effect": effect,
        "arguments": [{"name": "topic", "type": "string", "description": "The topic for the joke"}],
    })
    .to_string()
}

/// A folder with the service and a tool.
fn jokes(effect: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors.put("tool-service/joke-service", SERVICE).unwrap();
    descriptors
        .put("tool/tell-joke", &tool_of("tell-joke", effect))
        .unwrap();
    assert_eq!(descriptors.problems(), []);
    folder
}

fn agent(model: &ScriptedModel, bus: &InProcessBus, folder: &Path) -> AgentHostBuilder {
    let tools = ToolServices::new().folder(folder).poll_interval(SECOND);
    host_of(model).shared_bus(Arc::new(bus.clone())).add(tools)
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// An agent without words, whose tools the test calls.
async fn idle_agent(bus: &InProcessBus, folder: &Path) -> AgentHost {
    started(agent(&ScriptedModel::new(), bus, folder)).await
}

/// Calls `tell-joke`, and returns its text or its error.
async fn call(host: &AgentHost, arguments: &str) -> Result<String, (ToolErrorCode, String)> {
    let snapshot = host.tools().snapshot();
    let executor = snapshot.find("tell-joke").unwrap().executor();
    let cx = CallContext::new("s");
    let called = executor.execute(request("c", "tell-joke", arguments), &cx);
    match called.await {
        Ok(response) => Ok(response.content.into_words()),
        Err(error) => Err((error.code(), error.message().to_owned())),
    }
}

fn names(host: &AgentHost) -> Vec<String> {
    let snapshot = host.tools().snapshot();
    let names = snapshot
        .entries()
        .iter()
        .map(|tool| tool.registration().name.to_string());
    names.filter(|name| name.starts_with("tell")).collect()
}

/// A service that answers as its function does.
struct Served<F>(F);

impl<F> std::fmt::Debug for Served<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Served")
    }
}

#[async_trait]
impl<F: Fn(&str, &Value, &Value) -> Result<Value, BoxError> + Send + Sync + 'static> ToolService for Served<F> {
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
        self.0(user, config, arguments)
    }
}

async fn serve(
    bus: &InProcessBus,
    answer: impl Fn(&str, &Value, &Value) -> Result<Value, BoxError> + Send + Sync + 'static,
) -> RunningToolService {
    let server = ToolServiceServer::described(SERVICE, Served(answer)).unwrap();
    server.serve(Arc::new(bus.clone())).await.unwrap()
}

/// A hand-written service: it answers each request with these bodies, under the request's id unless they name another.
async fn replying(bus: &InProcessBus, bodies: &'static [&'static str]) -> (Subscription, Arc<Mutex<Vec<Value>>>) {
    let (publisher, requests) = (bus.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&requests);
    let handler = move |delivery: Delivery| {
        seen.lock()
            .unwrap()
            .push(serde_json::from_slice(&delivery.envelope.body).unwrap());
        let (bus, id) = (publisher.clone(), delivery.envelope.headers["id"].clone());
        async move {
            for body in bodies {
                let id = if body.contains("foreign") {
                    "another"
                } else {
                    id.as_str()
                };
                let reply = MessageEnvelope::new("reply", *body).with_header("id", id);
                bus.publish("tg.response.joke", Arc::new(reply)).await.unwrap();
            }
            Disposition::Ack
        }
    };
    (bus.on("tg.request.joke", "raw", handler).await.unwrap(), requests)
}

#[tokio::test(start_paused = true)]
async fn a_descriptor_makes_a_service_a_tool_of_the_model() {
    let (bus, folder) = (InProcessBus::new(), jokes("pure"));
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let _service = serve(&bus, move |user, config, arguments| {
        *noted.lock().unwrap() = Some((user.to_owned(), config.clone(), arguments.clone()));
        Ok(format!("Why do {} purr?", arguments["topic"].as_str().unwrap()).into())
    })
    .await;
    let model = ScriptedModel::new()
        .calls("tell-joke", json!({"topic": "cats", "extra": [1]}))
        .says("Ha.");
    let host = started(agent(&model, &bus, folder.path())).await;
    let alice = host.agent().for_principal(Principal::from("alice"));
    let answer = alice.ask("s", "A joke!").await.unwrap();
    assert_eq!(answer.text, "Ha.");
    assert_eq!(results(&model.requests()[1]), ["call_1: Why do cats purr?"]);
    let offered = String::from_utf8(model.requests()[0].tools.json().to_vec()).unwrap();
    assert!(
        offered.contains("Tell a joke on a given topic") && offered.contains("The topic for the joke"),
        "{offered}"
    );
    let (user, config, arguments) = seen.lock().unwrap().clone().unwrap();
    assert_eq!((user.as_str(), config), ("alice", json!({"style": "pun"})));
    assert_eq!(arguments, json!({"topic": "cats", "extra": [1]}), "passed through");
}

#[tokio::test(start_paused = true)]
async fn the_request_is_an_envelope_of_json_texts() {
    let (bus, folder) = (InProcessBus::new(), jokes("pure"));
    let (_service, requests) = replying(&bus, &[r#"{"response": "ha"}"#]).await;
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(call(&host, r#"{"topic": "é"}"#).await, Ok("ha".to_owned()));
    let expected = json!({"user": "local", "config": "{\"style\":\"pun\"}", "arguments": "{\"topic\": \"é\"}"});
    assert_eq!(*requests.lock().unwrap(), [expected]);
}

/// A service that answers in parts.
#[derive(Debug)]
struct Slowly;

#[async_trait]
impl ToolService for Slowly {
    async fn invoke(&self, _: &str, _: &Value, _: &Value) -> Result<Value, BoxError> {
        Err("it only streams".into())
    }

    async fn invoke_streaming(&self, _: &str, _: &Value, _: &Value, parts: &ReplyParts) -> Result<Value, BoxError> {
        parts.send("Why did ").await?;
        parts.send("").await?;
        parts.send("the llama ").await?;
        Ok("cross?".into())
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_result_are_progress_of_the_turn() {
    let (bus, folder) = (InProcessBus::new(), jokes("pure"));
    let server = ToolServiceServer::new("joke-service", "joke", Slowly).unwrap();
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let model = ScriptedModel::new()
        .calls("tell-joke", json!({"topic": "llamas"}))
        .says("Ha.");
    let host = started(agent(&model, &bus, folder.path())).await;
    let reports = collect(host.agent().ask("s", "A joke!").stream()).await;
    let parts: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::ToolProgress { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(parts, ["Why did ", "the llama "]);
    assert_eq!(results(&model.requests()[1]), ["call_1: Why did the llama cross?"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_what_happened_and_is_known() {
    let (bus, folder) = (InProcessBus::new(), jokes("mutating"));
    let host = idle_agent(&bus, folder.path()).await;
    let of_queue = "the tool service on `request:tg:joke`: ";
    let failed = |text: &str| Err((ToolErrorCode::ExecutionFailed, format!("{of_queue}{text}")));
    assert_eq!(
        call(&host, "{}").await,
        failed("no service takes requests there; start it")
    );
    let service = serve(&bus, |_, _, arguments| match arguments["topic"].as_str() {
        Some("panic") => panic!("boom"),
        Some(topic) => Err(format!("no joke about {topic}").into()),
        None => Ok(json!({"jokes": [1, 2]})),
    })
    .await;
    assert_eq!(call(&host, r#"{"topic": "tax"}"#).await, failed("no joke about tax"));
    assert_eq!(
        call(&host, r#"{"topic": "panic"}"#).await,
        failed("the service panicked: boom")
    );
    assert_eq!(call(&host, "").await, Ok(r#"{"jokes":[1,2]}"#.to_owned()));
    let refused = call(&host, "[1]").await.unwrap_err();
    assert_eq!(refused.0, ToolErrorCode::InvalidArguments);
    service.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn foreign_late_and_unreadable_replies_end_no_other_call() {
    let (bus, folder) = (InProcessBus::new(), jokes("mutating"));
    let host = idle_agent(&bus, folder.path()).await;
    let bodies = &[
        r#"{"response": "foreign"}"#,
        r#"{"response": "mine"}"#,
        r#"{"response": "again"}"#,
    ];
    let (service, _) = replying(&bus, bodies).await;
    for _ in 0..3 {
        assert_eq!(call(&host, "{}").await, Ok("mine".to_owned()));
    }
    service.close().await;
    let (service, _) = replying(&bus, &["[]", r#"{"response": "late"}"#]).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(code, ToolErrorCode::OutcomeUnknown);
    assert!(
        text.contains("its answer cannot be read: it is no JSON object"),
        "{text}"
    );
    service.close().await;
    let (_service, _) = replying(&bus, &[r#"{"error": {"type": "quota", "message": "empty"}}"#]).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(
        (code, text.ends_with(": quota: empty")),
        (ToolErrorCode::ExecutionFailed, true),
        "{text}"
    );
    settle().await;
    assert_eq!(bus.dead_letters(9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_call_has_limits_for_each_message_for_all_of_them_and_for_their_size() {
    let bus = InProcessBus::new();
    let publisher = bus.clone();
    // A part a second, without an end.
    let _service = bus
        .on("tg.request.joke", "endless", move |delivery: Delivery| {
            let (bus, id) = (publisher.clone(), delivery.envelope.headers["id"].clone());
            let arguments = String::from_utf8_lossy(&delivery.envelope.body).into_owned();
            async move {
                for _ in 0..if arguments.contains("once") { 1 } else { 100 } {
                    let body = r#"{"response": "12345", "end_of_stream": false}"#;
                    let reply = MessageEnvelope::new("reply", body).with_header("id", &id);
                    bus.publish("tg.response.joke", Arc::new(reply)).await.unwrap();
                    sleep(SECOND).await;
                }
                Disposition::Ack
            }
        })
        .await
        .unwrap();
    let limited = async |effect: &str, bytes| {
        let folder = jokes(effect);
        let tools = ToolServices::new().folder(folder.path());
        let tools = tools
            .message_time_limit(2 * SECOND)
            .time_limit(5 * SECOND)
            .max_result_bytes(bytes);
        let host = host_of(&ScriptedModel::new())
            .shared_bus(Arc::new(bus.clone()))
            .add(tools);
        (started(host).await, folder)
    };
    let (host, _folder) = limited("pure", 1000).await;
    let (code, text) = call(&host, r#"{"topic": "once"}"#).await.unwrap_err();
    assert_eq!(code, ToolErrorCode::Timeout);
    assert!(text.contains("it did not answer within 2 s"), "{text}");
    let (_, text) = call(&host, "{}").await.unwrap_err();
    assert!(text.contains("it did not answer within 5 s"), "{text}");
    sleep(200 * SECOND).await;
    let (host, _folder) = limited("mutating", 12).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(code, ToolErrorCode::OutcomeUnknown);
    assert!(text.contains("its answer is longer than 12 bytes"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_service_gets_the_request_again_after_a_delay() {
    let (bus, folder) = (InProcessBus::new(), jokes("mutating"));
    let (attempts, began) = (Arc::new(AtomicU32::new(0)), tokio::time::Instant::now());
    let counted = Arc::clone(&attempts);
    let service = Served(move |_: &str, _: &Value, arguments: &Value| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst) + 1;
        match attempt < 3 || arguments["topic"] == "never" {
            true => Err(TooManyRequests::new("100 jokes wait").into()),
            false => Ok(format!("attempt {attempt}").into()),
        }
    });
    let retry = RetryPolicy::default().with_first_delay(SECOND).with_max_attempts(3);
    let server = ToolServiceServer::described(SERVICE, service).unwrap().retry(retry);
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(call(&host, "{}").await, Ok("attempt 3".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 3, "after one second, then after two");
    let (_, text) = call(&host, r#"{"topic": "never"}"#).await.unwrap_err();
    assert!(text.ends_with("too-many-requests: 100 jokes wait"), "{text}");
    assert_eq!(attempts.load(Ordering::SeqCst), 6);
    assert_eq!(bus.dead_letters(9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_service_has_a_time_limit_and_replies_under_the_right_id() {
    let bus = InProcessBus::new();
    #[derive(Debug)]
    struct Stuck;
    #[async_trait]
    impl ToolService for Stuck {
        async fn invoke(&self, _: &str, _: &Value, _: &Value) -> Result<Value, BoxError> {
            std::future::pending().await
        }
    }
    let server = ToolServiceServer::described(SERVICE, Stuck).unwrap().time_limit(SECOND);
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let replies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&replies);
    let _listening = bus
        .on("tg.response.joke", "replies", move |delivery: Delivery| {
            let body: Value = serde_json::from_slice(&delivery.envelope.body).unwrap();
            let message = body["error"]["message"].as_str().unwrap().to_owned();
            seen.lock()
                .unwrap()
                .push((delivery.envelope.headers["id"].clone(), message));
            async { Disposition::Ack }
        })
        .await
        .unwrap();
    let send = async |id: Option<&str>, body: &str| {
        let envelope = MessageEnvelope::new("request", body.to_owned());
        let envelope = id
            .into_iter()
            .fold(envelope, |envelope, id| envelope.with_header("id", id));
        bus.publish("tg.request.joke", Arc::new(envelope)).await.unwrap();
    };
    send(Some("1"), "[]").await;
    send(None, r#"{"config": "["}"#).await;
    send(Some("3"), "null").await;
    send(Some("4"), "{}").await;
    sleep(2 * SECOND).await;
    let replies = replies.lock().unwrap().clone();
    let ids: Vec<_> = replies.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["1", "unknown", "3", "4"]);
    assert_eq!(replies[0].1, "the request is no JSON object");
    assert!(replies[1].1.starts_with("`config` is not JSON: "), "{}", replies[1].1);
    assert_eq!(replies[3].1, "the service took longer than 1 s");
}

#[tokio::test(start_paused = true)]
async fn tools_come_and_go_with_their_files() {
    let (bus, folder) = (InProcessBus::new(), jokes("pure"));
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(names(&host), ["tell-joke"]);
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors.put("tool/tell-pun", &tool_of("tell-pun", "pure")).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke", "tell-pun"]);
    // Another file that cannot be read, beside a good one that changes.
    std::fs::write(folder.path().join("tool/broken.json"), "{").unwrap();
    std::fs::write(folder.path().join("tool-service/joke-service.json"), "{").unwrap();
    std::fs::remove_file(folder.path().join("tool/tell-joke.json")).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(names(&host), ["tell-pun"]);
    let problems: Vec<_> = descriptors.problems().iter().map(|problem| problem.is_fatal).collect();
    assert_eq!(problems, [true, true, true]);
    std::fs::remove_dir_all(folder.path()).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(
        names(&host),
        ["tell-pun"],
        "a folder that cannot be read takes nothing down"
    );
    host.shutdown(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_or_wrong_keeps_only_that_tool_out() {
    let (bus, folder) = (InProcessBus::new(), jokes("pure"));
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors
        .put("tool/bad-name", &tool_of("tell a joke", "pure"))
        .unwrap();
    descriptors.put("tool/taken", &tool_of("tell-time", "pure")).unwrap();
    let (own, _) = noting_tool("tell-time");
    let host = started(agent(&ScriptedModel::new(), &bus, folder.path()).tool(own)).await;
    assert_eq!(names(&host), ["tell-time", "tell-joke"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_announces_its_tools_as_long_as_it_runs() {
    let (bus, shared) = (InProcessBus::new(), Arc::new(InProcessBus::new()));
    let announced = || async {
        let server = ToolServiceServer::described(SERVICE, Slowly).unwrap();
        let server = server.announces(&tool_of("tell-joke", "pure")).unwrap();
        server.serve(Arc::new(bus.clone())).await.unwrap()
    };
    let first = announced().await;
    let tools = ToolServices::new().bus(Arc::new(bus.clone())).announced();
    let host = started(host_of(&ScriptedModel::new()).shared_bus(shared).add(tools)).await;
    settle().await;
    assert_eq!(names(&host), ["tell-joke"], "the agent asks services that run already");
    assert!(
        host.tools()
            .snapshot()
            .find("tell-joke")
            .unwrap()
            .registration()
            .hints
            .outside_text
    );
    assert_eq!(call(&host, "{}").await, Ok("Why did the llama cross?".to_owned()));
    let second = announced().await;
    settle().await;
    first.shutdown().await;
    settle().await;
    assert_eq!(names(&host), ["tell-joke"], "another process of the service runs");
    sleep(115 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke"], "it announces again and again");
    // A process that dies says no goodbye.
    drop(second);
    sleep(20 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke"]);
    sleep(20 * SECOND).await;
    assert_eq!(names(&host), Vec::<String>::new());
}

#[test]
fn a_host_without_a_bus_or_with_a_wrong_folder_is_not_built() {
    let build = |tools: ToolServices| {
        let error = host_of(&ScriptedModel::new()).add(tools).build().unwrap_err();
        error.to_string()
    };
    let error = build(ToolServices::new());
    assert!(error.contains("`ToolServices::bus`"), "{error}");
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let error = build(ToolServices::new().bus(bus).folder("/nowhere/at/all"));
    assert!(error.contains("`/nowhere/at/all` cannot be used"), "{error}");
}

#[test]
fn a_key_or_a_descriptor_that_is_wrong_is_not_put() {
    let folder = tempfile::tempdir().unwrap();
    let descriptors = DescriptorFolder::new(folder.path());
    for key in ["joke", "mcp/joke", "tool/", "tool/../x", "tool/.x", "tool/a/b"] {
        let problem = descriptors.put(key, SERVICE).unwrap_err().to_string();
        assert_eq!(
            problem,
            format!("`{key}`: it is no key: write `tool-service/ID` or `tool/NAME`")
        );
    }
    let problem = descriptors.put("tool/joke", SERVICE).unwrap_err().to_string();
    assert_eq!(problem, "`tool/joke`: field `type` is missing: set it to a text");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
