//! Mutating calls whose workers are killed: each effect, counted in a file, happens at most once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::message::rabbitmq::RabbitMqBus;
use rockbot_core::CallContext;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeliveryHandler, MessageEnvelope, MessagePublisher, MessageSubscriber, Reach,
    RequestClient, SubscribeOptions, Subscription, TopicPattern,
};
use rockbot_core::tool::{RemoteToolExecutor, ToolError, ToolErrorCode, ToolExecutor as _, ToolInvokeResponse, tool};
use rockbot_host::AgentHost;

use crate::support::networks::broker::{Exchange, settings};
use crate::support::{Anything, request};

/// The file in which the worker counts its payments.
const EFFECTS: &str = "effects.txt";

/// The subscription of the worker's calls.
const CALLS: &str = "till.tool-invoke-till";

/// A worker in a process of its own.
struct Worker {
    process: Child,
    output: std::io::Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a worker whose data are in `data`, a folder below `folder`, and waits until it is ready.
    fn start(exchange: &Exchange, folder: &Path, data: &str, mode: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "effects_once::worker_process",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("FOLDER", folder)
            .env("DATA", folder.join(data))
            .env("MODE", mode)
            .env("URL", &exchange.url)
            .env("EXCHANGE", &exchange.settings.exchange_name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut worker = Self { process, output };
        worker.until("ready");
        worker
    }

    /// Waits until the worker prints `line`.
    fn until(&mut self, line: &str) {
        let found = self.output.by_ref().map(Result::unwrap).any(|printed| printed == line);
        assert!(found, "the worker ended before it printed `{line}`");
    }

    /// Kills the worker: on Unix by SIGKILL.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Publishes what its worker says, except answers to calls: there it stops for ever.
#[derive(Debug)]
struct Mute(RabbitMqBus);

#[async_trait]
impl MessagePublisher for Mute {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        if envelope.message_type.starts_with("RockBot.Tools.") {
            println!("\nanswering");
            std::future::pending::<()>().await;
        }
        self.0.publish(topic, envelope).await
    }
}

#[async_trait]
impl MessageSubscriber for Mute {
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        self.0.subscribe(pattern, name, options, handler).await
    }
}

#[async_trait]
impl Bus for Mute {
    async fn close(&self, within: Duration) -> CloseReport {
        self.0.close(within).await
    }
}

/// Not a test: the process of a worker, which is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that the tests below start"]
async fn worker_process() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let folder = variable("FOLDER");
    let mode = variable("MODE");
    let bus = RabbitMqBus::connect(settings(&variable("URL"), &variable("EXCHANGE")))
        .await
        .unwrap();
    let hangs = mode == "hang";
    let pay = tool("pay", move |_: Anything| {
        let file = Path::new(&folder).join(EFFECTS);
        async move {
            let mut effects = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)
                .unwrap();
            effects.write_all(b"paid\n").unwrap();
            println!("\npaid");
            if hangs {
                std::future::pending::<()>().await;
            }
            "paid"
        }
    });
    let bus: Arc<dyn Bus> = match mode.as_str() {
        "mute" => Arc::new(Mute(bus)),
        _ => Arc::new(bus),
    };
    let host = AgentHost::builder("till")
        .shared_bus(bus)
        .data_dir(variable("DATA"))
        .tool(pay.description("Pays."))
        .announce_tools()
        .build()
        .unwrap();
    host.start().await.unwrap();
    println!("\nready");
    std::future::pending::<()>().await;
}

/// Kills the worker of a payment, lets `next` take over, and checks how the call ends and that it
/// was paid once.
async fn check(mode: &str, until: &'static str, next_data: &str, expected: Result<&str, ToolErrorCode>) {
    let Some(exchange) = Exchange::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&exchange, folder.path(), "first", mode);
    let client = Arc::new(RequestClient::new(exchange.connect().await, "agent"));
    let executor = RemoteToolExecutor::new(client).with_topic("tool.invoke.till");
    let cx = CallContext::new("s").with_turn("turn-1".into());
    let calling = tokio::spawn(async move { executor.execute(request("1", "pay", "{}"), &cx).await });
    let worker = tokio::task::spawn_blocking(move || {
        worker.until(until);
        worker
    });
    worker.await.unwrap().kill();
    let next = Worker::start(&exchange, folder.path(), next_data, "serve");
    let ended: Result<ToolInvokeResponse, ToolError> = calling.await.unwrap();
    next.kill();
    exchange.delete(&[CALLS]).await;
    let paid = std::fs::read_to_string(folder.path().join(EFFECTS))
        .unwrap()
        .lines()
        .count();
    let ended = ended.map(|response| response.content.to_string());
    let ended = ended.as_deref().map_err(ToolError::code);
    assert_eq!((ended, paid), (expected, 1), "{mode}, then {next_data}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_worker_is_killed_in_the_middle_is_unknown_and_paid_once() {
    let unknown = Err(ToolErrorCode::OutcomeUnknown);
    // The same worker, started again, and another one of the name.
    check("hang", "paid", "first", unknown).await;
    check("hang", "paid", "second", unknown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_was_lost_gets_its_first_result_and_is_paid_once() {
    check("mute", "answering", "first", Ok("paid")).await;
}
