//! An agent that speaks to the program by hand, over a real broker.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rockbot_bus::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot_core::messaging::{
    Delivery, Disposition, Message as _, MessageEnvelope, MessagePublisher as _, MessageSubscriberExt as _,
    Subscription,
};
use rockbot_core::{IdSource as _, RandomIds};
use rockbot_tools::scripts::wire::{ScriptInvokeRequest, ScriptInvokeResponse};
use rockbot_tools::scripts::{Guarantees, Script};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Maximum duration of anything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A broker with exchanges and queues of a test's own, and an agent that speaks by hand.
pub(crate) struct Agent {
    pub(crate) bus: RabbitMqBus,
    pub(crate) settings: RabbitMqSettings,
    answers: mpsc::Receiver<ScriptInvokeResponse>,
    pub(crate) listening: Subscription,
    /// Memory of a script in MiB, by which the processes of this test are known.
    memory: u64,
}

impl Agent {
    /// Connects to the broker. Without one the test is skipped.
    pub(crate) async fn open() -> Option<Self> {
        let url = std::env::var("ROCKBOT_TEST_RABBITMQ_URL").unwrap_or_else(|_| "amqp://127.0.0.1:5672".to_owned());
        let mut settings = RabbitMqSettings::from_url(&url).unwrap();
        let name = format!("test-{}", RandomIds.next_id());
        settings.exchange_name.clone_from(&name);
        settings.dead_letter_exchange_name = format!("{name}.dlx");
        settings.queue_prefix = name;
        let bus = match RabbitMqBus::connect(settings.clone()).await {
            Ok(bus) => bus,
            Err(error) => {
                skip(&error.to_string());
                return None;
            }
        };
        let (sender, answers) = mpsc::channel(64);
        let heard = move |delivery: Delivery| {
            let sender = sender.clone();
            async move {
                sender.send(delivery.envelope.payload().unwrap()).await.unwrap();
                Disposition::Ack
            }
        };
        let listening = bus.on("script.result.clerk", "clerk", heard).await.unwrap();
        Some(Self {
            bus,
            settings,
            answers,
            listening,
            memory: marker(),
        })
    }

    /// Returns the program with the settings of this test in its environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rockbot-scripts-manager"));
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .kill_on_drop(true)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in [
            ("HOSTNAME", self.settings.host_name.clone()),
            ("PORT", self.settings.port.to_string()),
            ("EXCHANGENAME", self.settings.exchange_name.clone()),
            (
                "DEADLETTEREXCHANGENAME",
                self.settings.dead_letter_exchange_name.clone(),
            ),
            ("QUEUEPREFIX", self.settings.queue_prefix.clone()),
        ] {
            command.env(format!("ROCKBOT_RABBITMQ__{name}"), value);
        }
        command.env("ROCKBOT_SCRIPTS__MEMORYMEGABYTES", self.memory.to_string());
        command.env("ROCKBOT_SCRIPTSMANAGER__MAXCONCURRENTSCRIPTS", "3");
        command
    }

    /// Starts the program, and waits until it is ready. Without a sandbox the test is skipped.
    pub(crate) async fn start(&self) -> Option<Child> {
        match ready(&mut self.command()).await {
            Ok((program, ready)) => {
                assert!(ready.starts_with("ready: bubblewrap: no network, "), "{ready}");
                Some(program)
            }
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    pub(crate) async fn send(&self, id: &str, source: &str) {
        self.request(id, &Script::new(source), Guarantees::ALL).await;
    }

    pub(crate) async fn request(&self, id: &str, script: &Script, required: Guarantees) {
        let request = ScriptInvokeRequest::new(id, script, required);
        let envelope = MessageEnvelope::of(&request).unwrap().with_source("clerk");
        let envelope = Arc::new(envelope.with_reply_to("script.result.clerk"));
        self.bus
            .publish(ScriptInvokeRequest::TOPIC.unwrap(), envelope)
            .await
            .unwrap();
    }

    pub(crate) async fn answer(&mut self) -> ScriptInvokeResponse {
        timeout(PATIENCE, self.answers.recv()).await.unwrap().unwrap()
    }

    /// Returns `true` if a script of this test runs.
    pub(crate) fn is_running(&self) -> bool {
        let marker = (self.memory << 20).to_string();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&marker))
    }

    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }

    pub(crate) async fn close(self) {
        self.listening.close().await;
        self.bus.delete_subscription("scripts-manager").await.unwrap();
        self.bus.delete_topology().await.unwrap();
    }
}

/// Returns the memory of the scripts of a test, which no other test has.
fn marker() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    200 + u64::from(std::process::id()) % 1_000 * 8 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Starts a program and returns the line with which it is ready, or why it ended before.
pub(crate) async fn ready(command: &mut Command) -> Result<(Child, String), String> {
    let mut program = command.spawn().unwrap();
    let mut ready = String::new();
    let mut lines = BufReader::new(program.stdout.take().unwrap());
    timeout(PATIENCE, lines.read_line(&mut ready)).await.unwrap().unwrap();
    if ready.is_empty() {
        let mut why = String::new();
        program.stderr.take().unwrap().read_to_string(&mut why).await.unwrap();
        return Err(why);
    }
    Ok((program, ready))
}

/// Says why a test is skipped, or fails where none may be.
pub(crate) fn skip(reason: &str) {
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{reason}");
    println!("SKIPPED: {reason}");
}

pub(crate) async fn ended(program: &mut Child) -> ExitStatus {
    timeout(PATIENCE, program.wait()).await.unwrap().unwrap()
}

pub(crate) fn signal(program: &Child, name: &str) {
    let id = program.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.unwrap().success());
}
