//! The program over a real broker: told to end, killed and started again.
#![cfg(feature = "rabbitmq")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rockbot_bus::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot_core::messaging::{
    Delivery, Disposition, Message as _, MessageEnvelope, MessagePublisher as _, MessageSubscriberExt as _,
    Subscription,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{IdSource as _, RandomIds};
use rockbot_host::AgentHost;
use rockbot_tools::scripts::wire::{ScriptInvokeRequest, ScriptInvokeResponse};
use rockbot_tools::scripts::{Guarantees, Script, Scripts};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Maximum duration of anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker with exchanges and queues of a test's own, and an agent that speaks by hand.
struct Agent {
    bus: RabbitMqBus,
    settings: RabbitMqSettings,
    answers: mpsc::Receiver<ScriptInvokeResponse>,
    listening: Subscription,
    /// Memory of a script in MiB, by which the processes of this test are known.
    memory: u64,
}

impl Agent {
    /// Connects to the broker. Without one the test is skipped.
    async fn open() -> Option<Self> {
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
    fn command(&self) -> Command {
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
    async fn start(&self) -> Option<Child> {
        let mut program = self.command().spawn().unwrap();
        let mut ready = String::new();
        let mut lines = BufReader::new(program.stdout.take().unwrap());
        timeout(PATIENCE, lines.read_line(&mut ready)).await.unwrap().unwrap();
        if ready.is_empty() {
            let mut why = String::new();
            program.stderr.take().unwrap().read_to_string(&mut why).await.unwrap();
            skip(&why);
            return None;
        }
        assert!(ready.starts_with("ready: bubblewrap: no network, "), "{ready}");
        Some(program)
    }

    async fn send(&self, id: &str, source: &str) {
        let request = ScriptInvokeRequest::new(id, &Script::new(source), Guarantees::ALL);
        let envelope = MessageEnvelope::of(&request).unwrap().with_source("clerk");
        let envelope = Arc::new(envelope.with_reply_to("script.result.clerk"));
        self.bus
            .publish(ScriptInvokeRequest::TOPIC.unwrap(), envelope)
            .await
            .unwrap();
    }

    async fn answer(&mut self) -> ScriptInvokeResponse {
        timeout(PATIENCE, self.answers.recv()).await.unwrap().unwrap()
    }

    /// Returns `true` if a script of this test runs.
    fn is_running(&self) -> bool {
        let marker = (self.memory << 20).to_string();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&marker))
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }

    async fn close(self) {
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

/// Says why a test is skipped, or fails where none may be.
fn skip(reason: &str) {
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{reason}");
    println!("SKIPPED: {reason}");
}

async fn ended(program: &mut Child) -> ExitStatus {
    timeout(PATIENCE, program.wait()).await.unwrap().unwrap()
}

fn signal(program: &Child, name: &str) {
    let id = program.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.unwrap().success());
}

#[tokio::test]
async fn a_program_that_is_killed_and_started_again_answers_each_request_once() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    for id in 0..6 {
        agent
            .send(&id.to_string(), &format!("import time\ntime.sleep(2)\nprint({id})"))
            .await;
    }
    agent.until(Agent::is_running).await;
    program.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    let mut program = agent.start().await.unwrap();
    let mut answers = BTreeMap::new();
    for _ in 0..6 {
        let answer = agent.answer().await;
        let before = answers.insert(answer.tool_call_id.clone(), answer.into_output().unwrap());
        assert!(before.is_none(), "one answer for each request");
    }
    for (id, output) in &answers {
        assert_eq!(output.stdout, format!("{id}\n"));
        assert_eq!(output.guarantees, Some(Guarantees::ALL));
    }
    // A further request is the fence: no second answer came before its answer.
    agent.send("fence", "print('last')").await;
    assert_eq!(agent.answer().await.tool_call_id, "fence");
    signal(&program, "TERM");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    agent.until(|agent| !agent.is_running()).await;
    agent.close().await;
}

#[tokio::test]
async fn an_agent_has_the_answer_of_the_program_that_comes_after_the_kill() {
    let Some(agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    let script = json!({"script": "import time\ntime.sleep(2)\nprint(6 * 7)"});
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "scripts"}))
        .calls("execute_python_script", script)
        .says("42");
    let host = AgentHost::builder("butler")
        .chat(model.clone())
        .bus(agent.bus.clone())
        .add(Scripts::remote());
    let host = host.build().unwrap();
    host.start().await.unwrap();
    let butler = host.agent();
    let turn = butler.ask("main", "Calculate.").start().await.unwrap();
    agent.until(Agent::is_running).await;
    program.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    let mut next = agent.start().await.unwrap();
    assert_eq!(timeout(PATIENCE, turn.outcome()).await.unwrap().unwrap().text, "42");
    let request = model.requests().pop().unwrap();
    let results: Vec<_> = request
        .messages
        .iter()
        .filter(|message| message.tool_call_id.is_some())
        .collect();
    let told = results.last().unwrap().text().into_owned();
    assert!(told.starts_with("42\n[scripts manager: no network, "), "{told}");
    next.kill().await.unwrap();
    agent.bus.delete_subscription("scripts-manager").await.unwrap();
    agent.listening.close().await;
    agent.bus.delete_topology().await.unwrap();
    host.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_program_that_is_told_to_end_ends_its_scripts_first() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    agent.send("slow", "import time\ntime.sleep(2)\nprint('done')").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "done\n");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    // What comes later waits in the queue for the next program.
    agent.send("later", "print('later')").await;
    let Some(mut next) = agent.start().await else { return };
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "later\n");
    signal(&next, "INT");
    assert_eq!(ended(&mut next).await.code(), Some(0));
    agent.close().await;
}

/// Asks the program at its probes.
async fn probe(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    answer
}

#[tokio::test]
async fn a_program_tells_a_cluster_whether_it_takes_requests() {
    let Some(mut agent) = Agent::open().await else { return };
    let mut command = agent.command();
    command.env("ROCKBOT_SCRIPTSMANAGER__PROBEPORT", "0");
    let mut program = command.spawn().unwrap();
    let mut ready = String::new();
    let mut lines = BufReader::new(program.stdout.take().unwrap());
    timeout(PATIENCE, lines.read_line(&mut ready)).await.unwrap().unwrap();
    let Some((_, port)) = ready.trim().split_once("; probes at port ") else {
        return skip("the program has no sandbox");
    };
    let port = port.parse().unwrap();
    for (path, expected) in [
        ("/livez", "HTTP/1.1 200 OK"),
        ("/readyz", "HTTP/1.1 200 OK"),
        ("/", "HTTP/1.1 404 Not Found"),
    ] {
        let answer = probe(port, path).await;
        assert!(answer.starts_with(expected), "{path}: {answer}");
    }
    // It ends what runs, and takes nothing more.
    agent.send("slow", "import time\ntime.sleep(2)\nprint('done')").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    let ending = async {
        loop {
            let answer = probe(port, "/readyz").await;
            if answer.starts_with("HTTP/1.1 503 Service Unavailable") {
                return answer;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = timeout(PATIENCE, ending).await.unwrap();
    assert!(answer.ends_with("the manager takes no requests any more\n"), "{answer}");
    assert!(probe(port, "/livez").await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "done\n");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    agent.close().await;
}

#[tokio::test]
async fn scripts_that_outlast_the_program_are_killed_and_run_at_the_next() {
    let Some(agent) = Agent::open().await else { return };
    let mut command = agent.command();
    command.env("ROCKBOT_SCRIPTSMANAGER__SHUTDOWNSECONDS", "0");
    let mut program = command.spawn().unwrap();
    let mut ready = String::new();
    let mut lines = BufReader::new(program.stdout.take().unwrap());
    timeout(PATIENCE, lines.read_line(&mut ready)).await.unwrap().unwrap();
    if ready.is_empty() {
        return skip("the program has no sandbox");
    }
    // It does not end by itself while this test waits.
    agent.send("slow", "import time\ntime.sleep(250)").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    // A killed script may be seen for a moment.
    agent.until(|agent| !agent.is_running()).await;
    let mut next = agent.start().await.unwrap();
    agent.until(Agent::is_running).await;
    next.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    agent.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why_and_fails() {
    let run = |settings: &'static [(&str, &str)], arguments: &'static [&str]| async move {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rockbot-scripts-manager"));
        command
            .env_clear()
            .envs(settings.iter().copied())
            .args(arguments)
            .kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.unwrap().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (settings, arguments, expected) in [
        (
            &[("ROCKBOT_SCRIPTSMANAGER__BACKEND", "cloud")][..],
            &[][..],
            "error: `ScriptsManager.Backend` is `sandbox` or `kubernetes`, not `cloud`\n",
        ),
        (
            &[("ROCKBOT_SCRIPTSMANAGER__MAXCONCURRENTSCRIPTS", "0")],
            &[],
            "error: `ScriptsManager.MaxConcurrentScripts` is between 1 and 256\n",
        ),
        (&[], &["--confg"], "error: there is no argument `--confg`; see --help\n"),
    ] {
        let (code, error) = run(settings, arguments).await;
        assert_eq!((code, &*error), (Some(1), expected));
    }
    let (code, error) = run(&[("ROCKBOT_RABBITMQ__PORT", "1")], &[]).await;
    assert!(code == Some(1) && error.contains("error: "), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}
