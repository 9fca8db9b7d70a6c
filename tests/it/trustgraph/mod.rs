//! One broker shared with TrustGraph 2.11.1: its service and our agent, its client and our
//! service. RabbitMQ here, Pulsar in `pulsar`.

#[cfg(feature = "pulsar")]
mod pulsar;

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::message::rabbitmq::{ExchangeLayout, RabbitMqBus, RabbitMqSettings};
use rockbot::tool_services::{
    DescriptorFolder, QueueId, ReplyParts, RunningToolService, TooManyRequests, ToolService, ToolServiceServer,
    ToolServices,
};
use rockbot::{BoxError, CallContext, ExposeSecret as _, IdSource as _, RandomIds};
use rockbot_core::context::{ProgressListener, ProgressReporter};
use rockbot_core::messaging::{Bus, RetryPolicy};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolErrorCode;
use rockbot_host::AgentHost;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{Notes, host_of, request};

const PATIENCE: Duration = Duration::from_secs(60);

/// The programs of TrustGraph, the broker, and a topic that no other test has.
struct Neighbour {
    python: String,
    settings: RabbitMqSettings,
    bus: Arc<RabbitMqBus>,
    topic: String,
}

/// Returns the neighbour, unless TrustGraph or the broker is missing: the test is skipped then.
async fn neighbour() -> Option<Neighbour> {
    match find().await {
        Ok(found) => Some(found),
        Err(why) => {
            let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all");
            assert!(!is_required, "{why}");
            println!("SKIPPED: {why}");
            None
        }
    }
}

async fn find() -> Result<Neighbour, String> {
    let python = trustgraph()?;
    let url = std::env::var("ROCKBOT_TEST_RABBITMQ_URL").unwrap_or_else(|_| "amqp://127.0.0.1:5672".to_owned());
    let mut settings = RabbitMqSettings::from_url(&url).map_err(|error| error.to_string())?;
    let topic = format!("test-{}", RandomIds.next_id());
    settings.exchange_name.clone_from(&topic);
    settings.dead_letter_exchange_name = format!("{topic}.dlx");
    let settings = settings.with_exchange_layout(ExchangeLayout::Fanout);
    let bus = RabbitMqBus::connect(settings.clone()).await;
    Ok(Neighbour {
        python,
        settings,
        bus: Arc::new(bus.map_err(|error| error.to_string())?),
        topic,
    })
}

/// Returns a command that runs a script of this folder.
fn command(python: &str, script: &str) -> Command {
    let mut command = Command::new(python);
    command
        .arg(format!("{}/tests/it/trustgraph/{script}", env!("CARGO_MANIFEST_DIR")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs TrustGraph's client, and returns what it prints for each call.
async fn ask(mut client: Command, backend: &Value, topic: &str, calls: &[Value]) -> Vec<Value> {
    let calls = calls.iter().map(ToString::to_string);
    client.args([&backend.to_string(), topic]).args(calls);
    let output = timeout(PATIENCE, client.output()).await.unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the Python that has TrustGraph.
fn trustgraph() -> Result<String, String> {
    const NAME: &str = "ROCKBOT_TEST_TRUSTGRAPH";
    let python = std::env::var(NAME);
    python.map_err(|_| format!("{NAME} names no Python with TrustGraph; `.ci/trustgraph` installs one"))
}

impl Neighbour {
    fn command(&self, script: &str) -> Command {
        let mut command = command(&self.python, script);
        command.env("RABBITMQ_PASSWORD", self.settings.password.expose_secret());
        command
    }

    /// Starts TrustGraph's service, and waits until it takes requests.
    async fn service(&self, options: &[&str]) -> Child {
        let settings = &self.settings;
        let mut command = self.command("service.py");
        command
            .args([
                "--pubsub-backend",
                "rabbitmq",
                "--no-metrics",
                "--no-loki-enabled",
                "--topic",
                &self.topic,
            ])
            .args([
                "--rabbitmq-host",
                &settings.host_name,
                "--rabbitmq-port",
                &settings.port.to_string(),
            ])
            .args([
                "--rabbitmq-username",
                &settings.user_name,
                "--rabbitmq-vhost",
                &settings.virtual_host,
            ])
            .args(options);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = async { while lines.next_line().await.unwrap().expect("it runs") != "READY" {} };
        timeout(PATIENCE, ready).await.expect("it becomes ready");
        tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
        child
    }

    /// Runs TrustGraph's client, and returns what it prints for each call.
    async fn client(&self, calls: &[Value]) -> Vec<Value> {
        let settings = &self.settings;
        let backend = json!({
            "pubsub_backend": "rabbitmq", "rabbitmq_host": settings.host_name, "rabbitmq_port": settings.port,
            "rabbitmq_username": settings.user_name, "rabbitmq_vhost": settings.virtual_host,
        });
        ask(self.command("client.py"), &backend, &self.topic, calls).await
    }

    /// Starts an agent that has the service as a tool.
    async fn agent(&self, descriptors: &DescriptorFolder) -> AgentHost {
        agent(self.bus.clone(), &self.topic, "limerick", descriptors).await
    }

    /// Deletes what the test has made on the broker.
    async fn clean_up(self) {
        let queue = format!("tg.request.{}.joke-service-request", self.topic);
        self.bus.delete_subscription(&queue).await.unwrap();
        self.bus.delete_topology().await.unwrap();
        let _ = self.bus.close(Duration::ZERO).await;
    }
}

/// Starts an agent that has the service on a topic as a tool. The descriptor has the queues in
/// both spellings.
async fn agent(bus: Arc<dyn Bus>, topic: &str, style: &str, descriptors: &DescriptorFolder) -> AgentHost {
    let service = json!({
        "id": "joke-service",
        "request-queue": format!("non-persistent://tg/request/{topic}"),
        "response-queue": format!("response:tg:{topic}"),
        "config-params": ["style"],
    });
    let tool = json!({
        "type": "tool-service", "name": "tell-joke", "description": "Tells a joke.", "service": "joke-service",
        "style": style, "arguments": [{"name": "topic", "type": "string", "description": "Its topic"}],
    });
    descriptors
        .put("tool-service/joke-service", &service.to_string())
        .unwrap();
    descriptors.put("tool/tell-joke", &tool.to_string()).unwrap();
    let tools = ToolServices::new().bus(bus).folder(descriptors.path());
    let host = host_of(&ScriptedModel::new()).add(tools).build().unwrap();
    host.start().await.unwrap();
    host
}

struct Heard(Notes);

impl ProgressListener for Heard {
    fn tool_progress(&self, text: String) {
        self.0.add(text);
    }
}

/// Calls the tool; returns its result, or its error, and the progress.
async fn call(host: &AgentHost, arguments: Value) -> (Result<String, (ToolErrorCode, String)>, Vec<String>) {
    let heard = Notes::default();
    let cx = CallContext::new("s").with_progress(ProgressReporter::new(Arc::new(Heard(heard.clone()))));
    let snapshot = host.tools().snapshot();
    let executor = snapshot.find("tell-joke").unwrap().executor();
    let called = executor.execute(request("c", "tell-joke", &arguments.to_string()), &cx);
    let result = match timeout(PATIENCE, called).await.expect("the call ends") {
        Ok(response) => Ok(response.content.into_words()),
        Err(error) => Err((error.code(), error.message().to_owned())),
    };
    (result, heard.all())
}

#[tokio::test]
async fn our_agent_calls_a_service_of_trustgraph() {
    let Some(neighbour) = neighbour().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let host = neighbour.agent(&DescriptorFolder::new(folder.path())).await;
    let (early, _) = call(&host, json!({"topic": "llamas"})).await;
    let queue = format!("the tool service on `request:tg:{}`", neighbour.topic);
    let expected = format!("{queue}: no service takes requests there; start it");
    assert_eq!(early, Err((ToolErrorCode::ExecutionFailed, expected)));

    let mut service = neighbour.service(&[]).await;
    let joke = "A limerick about llamas \u{e9}".to_owned();
    assert_eq!(
        call(&host, json!({"topic": "llamas"})).await,
        (Ok(joke.clone()), Vec::new())
    );
    let (object, _) = call(&host, json!({"object": true})).await;
    let object: Value = serde_json::from_str(&object.unwrap()).unwrap();
    assert_eq!(
        object,
        json!({"config": {"style": "limerick"}, "arguments": {"object": true}})
    );
    let (failed, _) = call(&host, json!({"fail": "no llamas today"})).await;
    assert_eq!(
        failed,
        Err((ToolErrorCode::ExecutionFailed, format!("{queue}: no llamas today")))
    );
    assert_eq!(call(&host, json!({"topic": "llamas", "busy": 2})).await.0, Ok(joke));
    service.kill().await.unwrap();

    let mut service = neighbour.service(&["--parts"]).await;
    let (whole, parts) = call(&host, json!({})).await;
    service.kill().await.unwrap();
    assert_eq!(whole, Ok("Why did the llama cross?".to_owned()));
    assert_eq!(parts, ["Why did ", "the llama "]);
    host.shutdown(Duration::from_secs(1)).await;
    neighbour.clean_up().await;
}

/// Tells jokes, in one piece or in parts, or fails.
#[derive(Debug, Default)]
struct Jokes(std::sync::atomic::AtomicU32);

#[async_trait]
impl ToolService for Jokes {
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
        assert_eq!(user, "", "TrustGraph names no user");
        if arguments["busy"] == true && self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 {
            return Err(TooManyRequests::new("slow down").into());
        }
        match arguments["fail"].as_str() {
            Some(why) => Err(why.into()),
            None => Ok(json!([config["style"], arguments["topic"]])),
        }
    }

    async fn invoke_streaming(
        &self,
        user: &str,
        config: &Value,
        arguments: &Value,
        parts: &ReplyParts,
    ) -> Result<Value, BoxError> {
        if arguments["parts"] == true {
            parts.send("one ").await?;
            parts.send("two ").await?;
            return Ok("three".into());
        }
        self.invoke(user, config, arguments).await
    }
}

#[tokio::test]
async fn a_client_of_trustgraph_calls_our_service() {
    let Some(neighbour) = neighbour().await else { return };
    let running = serve(neighbour.bus.clone(), &neighbour.topic).await;
    assert_eq!(neighbour.client(&calls()).await, answers());
    running.shutdown().await;
    neighbour.clean_up().await;
}

/// Serves jokes on a topic.
async fn serve(bus: Arc<dyn Bus>, topic: &str) -> RunningToolService {
    let retry = RetryPolicy::default().with_first_delay(Duration::from_millis(100));
    let server = ToolServiceServer::new("joke-service", topic, Jokes::default())
        .unwrap()
        .retry(retry);
    let queues = (QueueId::request(topic).unwrap(), QueueId::response(topic).unwrap());
    server.with_queues(queues.0, queues.1).serve(bus).await.unwrap()
}

/// The calls of a client: an answer, a failure, parts, and a service that is busy at first.
fn calls() -> [Value; 4] {
    [
        json!([{"style": "pun"}, {"topic": "\u{e9}"}]),
        json!([{}, {"fail": "no llamas today"}]),
        json!([{}, {"parts": true}, true]),
        json!([{}, {"busy": true}]),
    ]
}

fn answers() -> [Value; 4] {
    [
        json!({"ok": "[\"pun\",\"\u{e9}\"]"}),
        json!({"error": "no llamas today"}),
        json!({"ok": "one two three", "parts": ["one ", "two ", "three"]}),
        json!({"ok": "[null,null]"}),
    ]
}
