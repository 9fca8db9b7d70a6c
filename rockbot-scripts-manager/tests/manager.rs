//! A manager on a bus inside this process: what becomes of requests, whatever happens to them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::messaging::{
    Bus, DeadLetters as _, Delivery, Disposition, Message as _, MessageEnvelope, MessagePublisher as _,
    MessageSubscriberExt as _, Subscription, headers,
};
use rockbot_core::{Clock as _, SystemClock, Timestamp};
use rockbot_host::bus::InProcessBus;
use rockbot_scripts_manager::{RunningScriptsManager, ScriptsManager};
use rockbot_tools::scripts::wire::{ScriptCancelled, ScriptInvokeRequest, ScriptInvokeResponse};
use rockbot_tools::scripts::{Guarantees, Script, ScriptError, ScriptOutput, ScriptRunner};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// Maximum duration of anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A runner that counts its scripts, and ends those called `gated` when it is told to.
#[derive(Debug, Clone)]
struct Counting {
    /// Scripts that began, without the trial.
    began: Arc<AtomicUsize>,
    /// Scripts that run.
    open: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<Script>>>,
    guarantees: Guarantees,
}

impl Counting {
    fn new() -> Self {
        Self {
            began: Arc::default(),
            open: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            seen: Arc::default(),
            guarantees: Guarantees::NONE,
        }
    }

    fn began(&self) -> usize {
        self.began.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// Counts a script until it ends or is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl ScriptRunner for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    async fn run(&self, script: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        if script.source.contains("declared") {
            // The trial of the manager.
            return Ok(ScriptOutput::new(0, "{}", ""));
        }
        self.began.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(self.open.clone());
        self.seen.lock().unwrap().push(script.clone());
        if script.source == "gated" {
            self.gate.acquire().await.unwrap().forget();
        }
        Ok(ScriptOutput::new(0, script.input, ""))
    }
}

/// An agent that speaks by hand, on the bus of a manager.
struct Desk {
    bus: Arc<InProcessBus>,
    runner: Counting,
    answers: mpsc::Receiver<Arc<MessageEnvelope>>,
    _listening: Subscription,
}

impl Desk {
    async fn open(runner: Counting) -> (Self, RunningScriptsManager) {
        let bus = Arc::new(InProcessBus::new());
        let (sender, answers) = mpsc::channel(64);
        let heard = move |delivery: Delivery| {
            let sender = sender.clone();
            async move {
                sender.send(delivery.envelope).await.unwrap();
                Disposition::Ack
            }
        };
        let listening = bus.on("script.result.#", "desk", heard).await.unwrap();
        let manager = ScriptsManager::new(runner.clone()).with_max_concurrent(2);
        let manager = manager.serve(bus.clone()).await.unwrap();
        let desk = Self {
            bus,
            runner,
            answers,
            _listening: listening,
        };
        (desk, manager)
    }

    async fn send(&self, request: MessageEnvelope) {
        let topic = ScriptInvokeRequest::TOPIC.unwrap();
        self.bus.publish(topic, Arc::new(request)).await.unwrap();
    }

    async fn cancel(&self, agent: &str, id: &str) {
        let envelope = MessageEnvelope::of(&ScriptCancelled::new(id))
            .unwrap()
            .with_source(agent);
        let topic = ScriptCancelled::TOPIC.unwrap();
        self.bus.publish(topic, Arc::new(envelope)).await.unwrap();
    }

    async fn answer(&mut self) -> (Arc<MessageEnvelope>, ScriptInvokeResponse) {
        let envelope = timeout(PATIENCE, self.answers.recv()).await.unwrap().unwrap();
        let answer = envelope.payload().unwrap();
        (envelope, answer)
    }

    /// Returns the answers that came, after a further request was answered.
    async fn others(&mut self) -> Vec<String> {
        self.send(request("last", "x")).await;
        let mut others = Vec::new();
        loop {
            let (_, answer) = self.answer().await;
            if answer.tool_call_id == "last" {
                return others;
            }
            others.push(answer.tool_call_id);
        }
    }

    async fn until(&self, is_so: impl Fn(&Counting) -> bool) {
        let waiting = async {
            while !is_so(&self.runner) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }
}

fn request(id: &str, source: &str) -> MessageEnvelope {
    let script = Script::new(source).with_input(id);
    let request = ScriptInvokeRequest::new(id, &script, Guarantees::NONE);
    MessageEnvelope::of(&request)
        .unwrap()
        .with_source("clerk")
        .with_reply_to("script.result.clerk")
}

#[tokio::test]
async fn a_request_is_answered_to_its_agent_with_its_correlation() {
    let (mut desk, manager) = Desk::open(Counting::new()).await;
    desk.send(request("r1", "x").with_correlation_id("c1")).await;
    let (envelope, answer) = desk.answer().await;
    assert_eq!(envelope.correlation_id.as_deref(), Some("c1"));
    assert_eq!(envelope.destination.as_deref(), Some("clerk"));
    assert_eq!(&*envelope.source, "scripts-manager");
    let expected = ("r1", Some("r1"), None, 0);
    let told = (
        &*answer.tool_call_id,
        answer.output.as_deref(),
        answer.stderr,
        answer.exit_code,
    );
    assert_eq!(told, expected);
    let seen = desk.runner.seen.lock().unwrap().clone();
    assert_eq!(seen, [Script::new("x").with_input("r1")]);
    manager.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn an_answer_goes_to_a_topic_of_results_and_nowhere_else() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    let stolen = desk.bus.on("user.#", "thief", |_: Delivery| async {
        panic!("an answer went astray")
    });
    let _stolen = stolen.await.unwrap();
    for topic in ["user.message", "script.resulted", "script.result.other"] {
        desk.send(request(topic, "x").with_reply_to(topic)).await;
        let (_, answer) = desk.answer().await;
        assert_eq!(answer.tool_call_id, topic);
    }
}

#[tokio::test]
async fn a_request_that_comes_again_runs_once_and_is_answered_once() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    for _ in 0..2 {
        desk.send(request("r1", "gated")).await;
    }
    desk.until(|runner| runner.open() == 1).await;
    desk.runner.gate.add_permits(1);
    let (_, answer) = desk.answer().await;
    assert_eq!(answer.tool_call_id, "r1");
    desk.send(request("r1", "gated")).await;
    assert_eq!(desk.others().await, Vec::<String>::new());
    assert_eq!(desk.runner.began(), 2, "one of them is the last request");
}

#[tokio::test]
async fn the_same_id_of_another_agent_is_another_request() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    desk.send(request("r1", "x")).await;
    desk.send(request("r1", "x").with_source("other")).await;
    for _ in 0..2 {
        assert_eq!(desk.answer().await.1.tool_call_id, "r1");
    }
    assert_eq!(desk.runner.began(), 2);
}

#[tokio::test]
async fn a_cancelled_script_is_killed_and_not_answered() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    desk.send(request("r1", "gated")).await;
    desk.until(|runner| runner.open() == 1).await;
    desk.cancel("thief", "r1").await;
    assert_eq!(desk.others().await, Vec::<String>::new());
    assert_eq!(desk.runner.open(), 1, "an agent cancels its own scripts alone");
    desk.cancel("clerk", "r1").await;
    desk.until(|runner| runner.open() == 0).await;
    // A cancellation may overtake its request.
    desk.cancel("clerk", "r2").await;
    desk.send(request("fence", "x")).await;
    assert_eq!(desk.answer().await.1.tool_call_id, "fence");
    desk.send(request("r2", "gated")).await;
    desk.send(request("after", "x")).await;
    assert_eq!(desk.answer().await.1.tool_call_id, "after");
}

#[tokio::test]
async fn no_more_scripts_run_at_once_than_are_allowed() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    for id in 0..6 {
        desk.send(request(&id.to_string(), "gated")).await;
    }
    desk.until(|runner| runner.open() == 2).await;
    for left in (0..6).rev() {
        desk.runner.gate.add_permits(1);
        desk.answer().await;
        assert!(desk.runner.open() <= 2.min(left + 1));
    }
    assert_eq!(desk.runner.began(), 6);
}

#[tokio::test]
async fn what_a_manager_does_not_run_is_refused_with_the_reason() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    let required = ScriptInvokeRequest::new("walls", &Script::new("x"), Guarantees::ALL);
    desk.send(MessageEnvelope::of(&required).unwrap()).await;
    let walls = desk.answer().await.1.into_output().unwrap_err().to_string();
    assert!(
        walls.starts_with("the script was refused: scripts run with fewer guarantees now (NOT "),
        "{walls}"
    );

    let many: Vec<_> = (0..21).map(|n| format!("p{n}")).collect();
    for (changed, expected) in [
        (
            json!({"script": "x".repeat((8 << 20) + 1)}),
            "source and input have 8388612 bytes, of 8388608: pass less input",
        ),
        (json!({ "pipPackages": many }), "it has 21 packages, of 20"),
        (
            json!({"pipPackages": ["--index-url"]}),
            "`--index-url` is not a package: write a name such as `numpy`, or `name==version`",
        ),
    ] {
        let mut body = json!({"toolCallId": "r", "script": "x", "inputData": "abc"});
        body.as_object_mut()
            .unwrap()
            .extend(changed.as_object().unwrap().clone());
        desk.send(MessageEnvelope::new(ScriptInvokeRequest::TYPE, body.to_string()).with_source(expected))
            .await;
        let error = desk.answer().await.1.into_output().unwrap_err();
        assert_eq!(error, ScriptError::Refused(expected.to_owned()));
    }
    assert_eq!(desk.runner.began(), 0);
}

#[tokio::test]
async fn times_are_bounded() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    for (asked, given) in [(0, 1), (17, 17), (100_000, 300)] {
        let script = Script::new("x").with_timeout(Duration::from_secs(asked));
        let request = ScriptInvokeRequest::new(asked.to_string(), &script, Guarantees::NONE);
        desk.send(MessageEnvelope::of(&request).unwrap()).await;
        desk.answer().await;
        let seen = desk.runner.seen.lock().unwrap().last().unwrap().timeout;
        assert_eq!(seen, Duration::from_secs(given));
    }
}

#[tokio::test]
async fn a_request_whose_agent_has_given_up_is_not_run() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    let minutes_ago = |minutes: u64| Timestamp::from_millis(SystemClock.now().as_millis() - minutes * 60_000);
    let waiting = |id: &str, minutes| {
        let request = request(id, "x").with_timestamp(minutes_ago(minutes));
        request.with_header(headers::TIMEOUT_MS, "60000")
    };
    desk.send(waiting("old", 10)).await;
    desk.send(waiting("skewed", 4)).await;
    assert_eq!(desk.others().await, ["skewed"]);
}

#[tokio::test]
async fn what_is_no_request_becomes_a_dead_letter() {
    let (mut desk, _manager) = Desk::open(Counting::new()).await;
    for body in ["{", "{}", r#"{"toolCallId":"","script":"x"}"#] {
        desk.send(MessageEnvelope::new(ScriptInvokeRequest::TYPE, body)).await;
    }
    assert_eq!(desk.others().await, Vec::<String>::new());
    let letters = desk.bus.dead_letters(10).await.unwrap();
    assert_eq!(letters.len(), 3, "{letters:?}");
}

#[tokio::test]
async fn a_manager_that_ends_waits_for_its_scripts() {
    let (mut desk, manager) = Desk::open(Counting::new()).await;
    desk.send(request("r1", "gated")).await;
    desk.until(|runner| runner.open() == 1).await;
    let ending = tokio::spawn(async move { manager.shutdown(PATIENCE).await });
    desk.runner.gate.add_permits(1);
    assert_eq!(desk.answer().await.1.tool_call_id, "r1");
    timeout(PATIENCE, ending).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_script_that_is_cut_off_runs_again_at_another_manager() {
    let (mut desk, manager) = Desk::open(Counting::new()).await;
    desk.send(request("r1", "gated")).await;
    desk.until(|runner| runner.open() == 1).await;
    let other = ScriptsManager::new(desk.runner.clone()).with_max_concurrent(2);
    let _other = other.serve(desk.bus.clone() as Arc<dyn Bus>).await.unwrap();
    manager.shutdown(Duration::from_millis(10)).await;
    desk.until(|runner| runner.began() == 2).await;
    assert_eq!(desk.runner.open(), 1, "the first run was killed");
    desk.runner.gate.add_permits(1);
    assert_eq!(desk.answer().await.1.tool_call_id, "r1");
}

#[tokio::test]
async fn a_runner_that_does_not_keep_its_guarantees_is_not_served() {
    #[derive(Debug)]
    struct Broken;

    #[async_trait]
    impl ScriptRunner for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn guarantees(&self) -> Guarantees {
            Guarantees::ALL
        }

        async fn run(&self, _: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
            Ok(ScriptOutput::new(
                0,
                r#"{"no_network":["reaches a server of the host"]}"#,
                "",
            ))
        }
    }

    let served = ScriptsManager::new(Broken).serve(Arc::new(InProcessBus::new())).await;
    let expected = "`broken` does not keep what it guarantees: a script reaches a server of the host";
    assert_eq!(served.unwrap_err().to_string(), expected);
}
