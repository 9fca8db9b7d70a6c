//! The life of a host: what it needs, how it starts, whether it is ready, and how it stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient};
use rockbot_core::messaging::{
    Bus, DeadLetterReason, DeadLetters, Message, MessageContext, MessageEnvelope, MessagePublisher, Reach,
    SubscribeOptions,
};
use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore, InMemoryRulesStore, RulesStore, WorkingMemory};
use rockbot_core::subsystem::{Declarations, Parts, Running, Stage, Subsystem};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::turn::TurnRequest;
use rockbot_core::user::UserMessage;
use rockbot_core::{BoxError, CallContext};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, BuildError, HostState, MessageOptions, StartError, Stores};
use rockbot_llm::ModelGateway;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep};

use crate::support::{Notes, noting_tool, settle};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug, Serialize, Deserialize)]
struct Job {
    n: u32,
}

impl Message for Job {
    const TYPE: &'static str = "work.Job";
    const TOPIC: Option<&'static str> = Some("work.job");
}

/// A message whose topic no message can have.
#[derive(Debug, Deserialize)]
struct Vague {}

impl Message for Vague {
    const TYPE: &'static str = "work.Vague";
    const TOPIC: Option<&'static str> = Some("vague.*");
}

fn host() -> AgentHostBuilder {
    AgentHost::builder("clerk").chat(ScriptedModel::new())
}

fn worker(bus: &InProcessBus) -> AgentHostBuilder {
    host().bus(bus.clone()).subscribe_to("work.#")
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

async fn send(bus: &InProcessBus, n: u32) -> Reach {
    let job = MessageEnvelope::of(&Job { n })
        .unwrap()
        .with_id(n.to_string())
        .with_source("boss");
    bus.publish("work.job", Arc::new(job)).await.unwrap()
}

/// A subsystem that notes what happens to it.
#[derive(Debug, Clone)]
struct Noting {
    name: &'static str,
    stage: Stage,
    notes: Notes,
    starts: Result<(), &'static str>,
    stops: Stops,
    healthy: Arc<AtomicBool>,
}

/// The way in which a subsystem stops.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stops {
    After(Duration),
    Never,
    ByPanicking,
}

impl Noting {
    fn new(name: &'static str, stage: Stage, notes: &Notes) -> Self {
        Self {
            name,
            stage,
            notes: notes.clone(),
            starts: Ok(()),
            stops: Stops::After(Duration::ZERO),
            healthy: Arc::new(AtomicBool::new(true)),
        }
    }
}

#[async_trait]
impl Subsystem for Noting {
    fn name(&self) -> &str {
        self.name
    }

    fn stage(&self) -> Stage {
        self.stage
    }

    fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        assert_ne!(self.starts, Err("panic"), "no fuel");
        self.starts?;
        self.notes.add(format!("{} starts", self.name));
        Ok(self)
    }
}

#[async_trait]
impl Running for Noting {
    async fn stop(&self) {
        self.notes.add(format!("{} stops", self.name));
        match self.stops {
            Stops::After(time) => sleep(time).await,
            Stops::Never => std::future::pending().await,
            Stops::ByPanicking => panic!("no brakes"),
        }
        self.notes.add(format!("{} has stopped", self.name));
    }

    fn check(&self) -> Result<(), String> {
        if self.healthy.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err("it has a cold".to_owned())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn subsystems_start_in_the_order_of_their_stages_and_stop_in_reverse() {
    let notes = Notes::default();
    let noting = |name, stage| Noting::new(name, stage, &notes);
    let host = host()
        .add(noting("service one", Stage::Services))
        .add(noting("dreams", Stage::Dreams))
        .add(noting("memory", Stage::Memory))
        .add(noting("service two", Stage::Services))
        .add(noting("evaluation", Stage::Evaluation))
        .add(noting("skills", Stage::Skills))
        .add(noting("bridge", Stage::Bridges));
    let host = started(host).await;
    let order = [
        "skills",
        "bridge",
        "memory",
        "evaluation",
        "dreams",
        "service one",
        "service two",
    ];
    assert_eq!(notes.all(), order.map(|name| format!("{name} starts")));
    host.shutdown(SECOND).await;
    let stopped = order
        .iter()
        .rev()
        .flat_map(|name| [format!("{name} stops"), format!("{name} has stopped")]);
    assert_eq!(notes.all()[order.len()..], stopped.collect::<Vec<_>>());
}

/// Gives rules, and needs feedback.
#[derive(Debug)]
struct Tutor;

#[async_trait]
impl Subsystem for Tutor {
    fn name(&self) -> &str {
        "tutor"
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        needs.provide::<dyn RulesStore>(Arc::new(InMemoryRulesStore::new()));
        needs.require::<dyn FeedbackStore>("call `.stores(…)` with a `Stores::with_feedback`");
        needs.handle(|_: Job, _: MessageContext| async {});
        needs.subscribe_to("work.job", SubscribeOptions::new());
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        parts.require::<dyn FeedbackStore>()?;
        Ok(Box::new(rockbot_core::subsystem::Idle))
    }
}

/// Fails to declare.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl Subsystem for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
        Err("its configuration has no `endpoint`".into())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Err("never built".into())
    }
}

#[tokio::test]
async fn what_a_subsystem_needs_may_be_added_before_or_after_it() {
    let feedback = InMemoryFeedbackStore::new;
    let bus = InProcessBus::new;
    let before = started(
        host()
            .bus(bus())
            .stores(Stores::new().with_feedback(feedback()))
            .add(Tutor),
    )
    .await;
    let after = started(
        host()
            .add(Tutor)
            .stores(Stores::new().with_feedback(feedback()))
            .bus(bus()),
    )
    .await;
    for host in [before, after] {
        assert!(host.parts().get::<dyn RulesStore>().is_some());
        assert!(host.parts().get::<dyn Bus>().is_some());
        assert!(host.parts().get::<dyn WorkingMemory>().is_none());
        assert_eq!(host.readiness(), Ok(()));
    }
}

fn unbuilt(built: Result<AgentHost, BuildError>) -> String {
    built.map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn an_error_of_the_builder_says_what_to_add() {
    let bus = InProcessBus::new;
    let job = || |_: Job, _: MessageContext| async {};
    let feedback = InMemoryFeedbackStore::new;
    let errors = [
        ("no model", AgentHost::in_memory().build()),
        ("a missing part", host().bus(bus()).add(Tutor).build()),
        (
            "a part twice",
            host()
                .bus(bus())
                .stores(Stores::new().with_feedback(feedback()))
                .add(Tutor)
                .stores(Stores::new().with_rules(InMemoryRulesStore::new()))
                .build(),
        ),
        (
            "a part twice by the builder",
            host()
                .stores(Stores::new().with_feedback(feedback()))
                .stores(Stores::new().with_feedback(feedback()))
                .build(),
        ),
        ("a subsystem that cannot", host().add(Broken).build()),
        (
            "a handler without a subscription",
            host().bus(bus()).handle_named::<Job, _>("work.Job", job()).build(),
        ),
        (
            "a subscription without a handler",
            host().bus(bus()).subscribe_to("work.#").build(),
        ),
        (
            "a subscription without a bus",
            host().subscribe_to("work.#").handle(job()).build(),
        ),
        ("users without a bus", host().serve_users().build()),
        ("tools without a bus", host().serve_tools().build()),
        (
            "a topic that is a pattern",
            worker(&bus()).handle(|_: Vague, _: MessageContext| async {}).build(),
        ),
        (
            "users whose replies come back",
            worker(&bus()).handle(job()).serve_users().subscribe_to("#").build(),
        ),
        (
            "one pattern served in two ways",
            worker(&bus())
                .handle(job())
                .subscribe_with("work.#", SubscribeOptions::new().with_concurrency(9))
                .build(),
        ),
        ("a bus and nothing else", AgentHost::builder("a").bus(bus()).build()),
        (
            "two handlers twice",
            worker(&bus())
                .handle(job())
                .handle_named::<Job, _>("WORK.job", job())
                .serve_users()
                .handle_named::<UserMessage, _>(UserMessage::TYPE, |_: UserMessage, _: MessageContext| async {})
                .build(),
        ),
        (
            "a pattern that is none",
            worker(&bus())
                .subscribe_to("a..b")
                .handle(job())
                .message_options(MessageOptions::new().with_reply_topics(["x*"]))
                .build(),
        ),
        (
            "a tool twice",
            host().tool(noting_tool("look").0).tool(noting_tool("look").0).build(),
        ),
        (
            "everything at once",
            AgentHost::in_memory()
                .add(Broken)
                .add(Tutor)
                .tool(noting_tool("a b").0)
                .build(),
        ),
    ];
    let lines = errors.map(|(what, built)| format!("{what}:\n  {}", unbuilt(built)));
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_takes_the_topic_of_its_messages_once() {
    let builders: [fn(AgentHostBuilder) -> AgentHostBuilder; 3] = [
        |host| host,
        |host| host.subscribe_to("other.#"),
        |host| host.subscribe_to("work.#"),
    ];
    for builder in builders {
        let bus = InProcessBus::new();
        let notes = Notes::default();
        let handled = notes.clone();
        let handler = move |job: Job, _: MessageContext| {
            handled.add(job.n.to_string());
            async {}
        };
        let host = started(builder(host().bus(bus.clone()).handle(handler))).await;
        assert_eq!(send(&bus, 1).await, Reach::Subscribers);
        settle().await;
        assert_eq!(notes.all(), ["1"]);
        host.shutdown(LONG).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_subsystem_that_does_not_start_undoes_what_had_started() {
    for (fault, why) in [("no fuel", "no fuel"), ("panic", "it panicked: assertion")] {
        let bus = InProcessBus::new();
        let notes = Notes::default();
        let mut failing = Noting::new("engine", Stage::Services, &notes);
        failing.starts = Err(fault);
        let host = worker(&bus)
            .handle(|_: Job, _: MessageContext| async {})
            .add(failing)
            .add(Noting::new("never", Stage::Services, &notes))
            .add(Noting::new("memory", Stage::Memory, &notes))
            .build()
            .unwrap();
        let error = host.start().await.unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("`engine` did not start: {why}")),
            "{error}"
        );
        assert_eq!(notes.all(), ["memory starts", "memory stops", "memory has stopped"]);
        assert_eq!(host.state(), HostState::Stopped);
        assert!(matches!(host.start().await, Err(StartError::Again)));
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_tells_where_the_host_is_and_what_is_wrong() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let ill = Noting::new("nurse", Stage::Services, &notes);
    let healthy = ill.healthy.clone();
    let host = worker(&bus)
        .handle(|_: Job, _: MessageContext| async {})
        .add(ill)
        .build()
        .unwrap();
    let reasons = || host.readiness().map_err(|not| not.reasons);
    assert_eq!(
        (host.state(), reasons()),
        (HostState::Built, Err(vec!["its state is Built".to_owned()]))
    );
    host.start().await.unwrap();
    assert_eq!((host.state(), reasons()), (HostState::Started, Ok(())));
    assert!(matches!(host.start().await, Err(StartError::Again)));
    assert_eq!(host.state(), HostState::Started, "the second start changed nothing");

    healthy.store(false, Ordering::SeqCst);
    assert_eq!(reasons(), Err(vec!["`nurse`: it has a cold".to_owned()]));
    assert_eq!(
        host.readiness().unwrap_err().to_string(),
        "the host is not ready: `nurse`: it has a cold"
    );
    healthy.store(true, Ordering::SeqCst);
    let _ = bus.close(SECOND).await;
    assert_eq!(
        reasons(),
        Err(vec!["the subscription `clerk.work-__` has ended".to_owned()])
    );
    host.shutdown(SECOND).await;
    assert_eq!(
        (host.state(), reasons()),
        (HostState::Stopped, Err(vec!["its state is Stopped".to_owned()]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_started_stops_too() {
    let bus = InProcessBus::new();
    let host = worker(&bus)
        .handle(|_: Job, _: MessageContext| async {})
        .build()
        .unwrap();
    host.shutdown(SECOND).await;
    assert_eq!(host.state(), HostState::Stopped);
    assert!(matches!(host.start().await, Err(StartError::Again)));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_stopped_while_it_starts_takes_no_messages() {
    let bus = InProcessBus::new();
    let gate = Arc::new(Notify::new());
    #[derive(Debug)]
    struct Slow(Arc<Notify>);
    #[async_trait]
    impl Subsystem for Slow {
        fn name(&self) -> &str {
            "slow"
        }
        fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
            Ok(())
        }
        async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
            self.0.notified().await;
            Ok(Box::new(rockbot_core::subsystem::Idle))
        }
    }
    let shared: Arc<dyn Bus> = Arc::new(bus.clone());
    let host = host()
        .shared_bus(shared)
        .subscribe_to("work.#")
        .handle(|_: Job, _: MessageContext| async {})
        .add(Slow(gate.clone()))
        .build()
        .unwrap();
    let host = Arc::new(host);
    let starting = tokio::spawn({
        let host = host.clone();
        async move { host.start().await.map(drop) }
    });
    settle().await;
    assert_eq!(host.state(), HostState::Starting);
    host.shutdown(SECOND).await;
    gate.notify_one();
    assert!(matches!(starting.await.unwrap(), Err(StartError::Again)));
    assert_eq!(
        (host.state(), send(&bus, 1).await),
        (HostState::Stopped, Reach::NoSubscribers)
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_runs_until_it_is_told_to_stop() {
    let stop = Arc::new(Notify::new());
    let notes = Notes::default();
    let host = Arc::new(
        host()
            .add(Noting::new("memory", Stage::Memory, &notes))
            .build()
            .unwrap(),
    );
    let running = tokio::spawn({
        let host = host.clone();
        let stop = stop.clone();
        async move { host.run_until(stop.notified()).await }
    });
    settle().await;
    assert_eq!(host.state(), HostState::Started);
    stop.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(host.state(), HostState::Stopped);
    assert_eq!(notes.all(), ["memory starts", "memory stops", "memory has stopped"]);
}

/// The number of jobs that began and ended.
#[derive(Debug, Clone, Default)]
struct Jobs {
    begun: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

impl Jobs {
    /// Handles jobs: the first five are fast, the next ten slow, five are stuck.
    fn handler(&self) -> impl Fn(Job, MessageContext) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + use<> {
        let jobs = self.clone();
        move |job, _| {
            let jobs = jobs.clone();
            Box::pin(async move {
                jobs.begun.fetch_add(1, Ordering::SeqCst);
                match job.n {
                    0..5 => sleep(Duration::from_millis(10)).await,
                    5..15 => sleep(2 * SECOND).await,
                    _ => std::future::pending().await,
                }
                jobs.done.fetch_add(1, Ordering::SeqCst);
            })
        }
    }

    fn counts(&self) -> (usize, usize) {
        (self.begun.load(Ordering::SeqCst), self.done.load(Ordering::SeqCst))
    }
}

/// Twenty jobs run, a hundred wait, a model writes, a turn waits for a tool: the host stops in
/// time and loses nothing.
async fn check_drain(shared: bool) {
    let bus = InProcessBus::new();
    let jobs = Jobs::default();
    let notes = Notes::default();
    let model = ScriptedModel::new().hangs().calls("work", json!({}));
    let (work, mut handle) = mock_tool("work");
    let host = host()
        .chat(model)
        .tool(work.time_limit(LONG))
        .subscribe_with("work.#", SubscribeOptions::new().with_concurrency(20))
        .handle(jobs.handler())
        .add(Noting {
            stops: Stops::After(SECOND / 10),
            ..Noting::new("memory", Stage::Memory, &notes)
        });
    let host = if shared {
        host.shared_bus(Arc::new(bus.clone()))
    } else {
        host.bus(bus.clone())
    };
    let host = started(host).await;
    let streaming = tokio::spawn(collect_quietly(host.agent().stream("a", "Write!")));
    settle().await;
    let calling = tokio::spawn(collect_quietly(host.agent().stream("b", "Work!")));
    let call = handle.next_call().await;
    for n in 0..120 {
        send(&bus, n).await;
    }
    settle().await;
    assert_eq!(jobs.counts(), (20, 0));

    let began = Instant::now();
    host.shutdown(10 * SECOND).await;
    assert!(began.elapsed() <= 11 * SECOND, "{:?}", began.elapsed());
    assert_eq!(jobs.counts(), (20, 15), "nothing new began, what could end has ended");
    assert_eq!(notes.all(), ["memory starts", "memory stops", "memory has stopped"]);
    let letters = bus.dead_letters(1000).await.unwrap();
    assert_eq!(letters.len(), 105, "what waited, and what was stuck");
    let ended = [DeadLetterReason::Unsubscribed, DeadLetterReason::Closed];
    assert!(
        letters.iter().all(|letter| ended.contains(&letter.reason)),
        "{letters:#?}"
    );
    drop(call);
    streaming.await.unwrap();
    calling.await.unwrap();

    let again = Instant::now();
    host.shutdown(10 * SECOND).await;
    assert!(again.elapsed() < SECOND);
    let asked = host.agent().ask("c", "Anybody?").await;
    assert!(asked.is_err(), "{asked:?}");
    drop(host);
    sleep(LONG).await;
    assert_eq!(jobs.counts(), (20, 15), "nothing runs on");
}

/// Lets a stream run, whatever its end is.
async fn collect_quietly(mut stream: rockbot_host::TurnStream) {
    while futures_util::StreamExt::next(&mut stream).await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_busy_host_stops_in_time_and_loses_nothing() {
    check_drain(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_host_on_a_shared_bus_takes_its_handlers_with_it() {
    check_drain(true).await;
}

#[tokio::test(start_paused = true)]
async fn no_subscription_takes_new_work_while_another_one_is_stuck() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let noted = notes.clone();
    let handler = move |job: Job, _: MessageContext| {
        noted.add(job.n.to_string());
        async move {
            if job.n == 0 {
                std::future::pending::<()>().await;
            }
        }
    };
    let host = worker(&bus).subscribe_to("more.#").handle(handler);
    let host = Arc::new(started(host).await);
    send(&bus, 0).await;
    settle().await;
    let stopping = tokio::spawn({
        let host = host.clone();
        async move { host.shutdown(10 * SECOND).await }
    });
    settle().await;
    let late = MessageEnvelope::of(&Job { n: 1 }).unwrap();
    assert_eq!(
        bus.publish("more.work", Arc::new(late)).await.unwrap(),
        Reach::NoSubscribers
    );
    stopping.await.unwrap();
    assert_eq!(notes.all(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn stuck_work_and_stuck_subsystems_leave_the_others_time_to_stop() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let noting = |name, stops| Noting {
        stops,
        ..Noting::new(name, Stage::Services, &notes)
    };
    let flushing = Stops::After(SECOND / 10);
    let host = worker(&bus)
        .handle(|_: Job, _: MessageContext| std::future::pending::<()>())
        .add(noting("first", flushing))
        .add(noting("stuck", Stops::Never))
        .add(noting("wrong", Stops::ByPanicking))
        .add(noting("last", flushing));
    let host = started(host).await;
    send(&bus, 1).await;
    settle().await;
    let began = Instant::now();
    host.shutdown(4 * SECOND).await;
    assert!(began.elapsed() <= 5 * SECOND, "{:?}", began.elapsed());
    let expected = [
        "last stops",
        "last has stopped",
        "wrong stops",
        "stuck stops",
        "first stops",
        "first has stopped",
    ];
    assert_eq!(notes.all()[4..], expected);
    assert_eq!(host.state(), HostState::Stopped);
}

/// Counts how many copies of it there are.
#[derive(Clone)]
struct Alive(#[allow(dead_code, reason = "it counts by being there")] Arc<()>);

#[tokio::test(start_paused = true)]
async fn a_host_that_is_dropped_ends_its_tasks() {
    let token = Arc::new(());
    let alive = Alive(token.clone());
    let bus = InProcessBus::new();
    let held = alive.clone();
    let handler = move |_: Job, _: MessageContext| {
        let held = held.clone();
        async move {
            let _held = held;
            std::future::pending::<()>().await;
        }
    };
    let model = ScriptedModel::new().hangs();
    let host = host()
        .chat(model)
        .shared_bus(Arc::new(bus.clone()))
        .subscribe_to("work.#")
        .serve_users()
        .handle(handler);
    let host = started(host).await;
    send(&bus, 1).await;
    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!"))
        .unwrap()
        .with_reply_to("desk");
    bus.publish("user.message", Arc::new(message)).await.unwrap();
    settle().await;
    drop(alive);
    assert_eq!(
        Arc::strong_count(&token),
        3,
        "the test's, the handler's, and the one that runs"
    );
    drop(host);
    settle().await;
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(send(&bus, 2).await, Reach::NoSubscribers);
    let metrics = tokio::runtime::Handle::current().metrics();
    assert_eq!(metrics.num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shared_bus_stays_open_and_one_of_ones_own_does_not() {
    let shared = InProcessBus::new();
    let own = InProcessBus::new();
    for (bus, is_shared) in [(&shared, true), (&own, false)] {
        let host = host()
            .subscribe_to("work.#")
            .handle(|_: Job, _: MessageContext| async {});
        let host = if is_shared {
            host.shared_bus(Arc::new(bus.clone()))
        } else {
            host.bus(bus.clone())
        };
        started(host).await.shutdown(SECOND).await;
        let job = MessageEnvelope::of(&Job { n: 1 }).unwrap();
        assert_eq!(bus.publish("work.job", Arc::new(job)).await.is_ok(), is_shared);
    }
}

#[tokio::test(start_paused = true)]
async fn instances_of_one_agent_share_messages_and_agents_of_other_names_get_copies() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let hired = |name: &'static str, place: &'static str| {
        let notes = notes.clone();
        AgentHost::builder(name)
            .chat(ScriptedModel::new())
            .shared_bus(Arc::new(bus.clone()))
            .subscribe_to("work.#")
            .handle(move |job: Job, cx: MessageContext| {
                notes.add(format!("{} {place} {}", cx.identity().name(), job.n));
                sleep(SECOND)
            })
    };
    let one = started(hired("clerk", "upstairs")).await;
    let _two = started(hired("clerk", "downstairs")).await;
    let _other = started(hired("auditor", "outside")).await;
    for n in 0..6 {
        send(&bus, n).await;
    }
    sleep(LONG).await;
    let count = |who: &str| notes.all().iter().filter(|note| note.starts_with(who)).count();
    let counts = ["clerk upstairs", "clerk downstairs", "auditor"].map(count);
    assert_eq!(counts, [3, 3, 6]);

    one.shutdown(SECOND).await;
    for n in 6..10 {
        send(&bus, n).await;
    }
    sleep(LONG).await;
    let counts = ["clerk upstairs", "clerk downstairs", "auditor"].map(count);
    assert_eq!(counts, [3, 7, 10]);
}

#[tokio::test(start_paused = true)]
async fn what_an_instance_leaves_behind_another_one_does() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let open = Arc::new(Semaphore::new(0));
    let hired = |place: &'static str, stuck: bool| {
        let notes = notes.clone();
        let open = open.clone();
        host()
            .shared_bus(Arc::new(bus.clone()))
            .subscribe_to("work.#")
            .handle(move |job: Job, _: MessageContext| {
                let notes = notes.clone();
                let open = open.clone();
                async move {
                    if stuck {
                        open.acquire().await.unwrap().forget();
                    }
                    notes.add(format!("{place} {}", job.n));
                }
            })
    };
    let stuck = started(hired("upstairs", true)).await;
    send(&bus, 1).await;
    settle().await;
    let _other = started(hired("downstairs", false)).await;
    stuck.shutdown(SECOND).await;
    sleep(LONG).await;
    assert_eq!(notes.all(), ["downstairs 1"]);
    assert!(bus.dead_letters(10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_host_with_a_bus_still_answers_who_embeds_it() {
    let bus = InProcessBus::new();
    let host = host()
        .chat(ScriptedModel::new().says("Hello."))
        .bus(bus)
        .build()
        .unwrap();
    let outcome = host.agent().run(TurnRequest::new("s", "1", "Hi!")).await.unwrap();
    assert_eq!(outcome.text, "Hello.");
}

#[tokio::test]
async fn a_host_that_only_handles_messages_needs_no_model() {
    let bus = InProcessBus::new();
    let host = AgentHost::builder("worker")
        .bus(bus.clone())
        .serve_tools()
        .build()
        .unwrap();
    let error = host.agent().ask("s", "hi").await.unwrap_err().to_string();
    assert!(error.contains("the host has no model to ask"), "{error}");
}

#[tokio::test]
async fn a_subsystem_finds_the_agent_of_its_host() {
    let model = ScriptedModel::new().says("Hello.");
    let host = AgentHost::in_memory().chat(model).build().unwrap();
    let agent = host.parts().get::<rockbot_host::Agent>().unwrap();
    assert_eq!(agent.ask("s", "hi").await.unwrap().text, "Hello.");
}

#[tokio::test]
async fn it_is_idle_when_no_turn_works_and_no_model_is_asked() {
    let (send, mut handle) = mock_tool("send");
    let model = ScriptedModel::new().calls("send", json!({})).says("Done.").hangs();
    let gateway = ModelGateway::new(model);
    let host = host()
        .chat(gateway.clone())
        .tool(send.needs_approval())
        .build()
        .unwrap();
    let agent = host.parts().get::<rockbot_host::Agent>().unwrap();
    assert!(agent.is_idle());

    let parked = agent.run(TurnRequest::new("s", "1", "Send it.")).await.unwrap();
    assert!(agent.is_idle(), "a turn that waits for a person does not work");
    agent.decide(agent.approvals()[0].approve()).await.unwrap();
    let call = handle.next_call().await;
    assert!(!agent.is_idle());
    call.respond("sent");
    agent.outcome(&parked.turn).await.unwrap();
    assert!(agent.is_idle());

    // Another caller asks through the same gateway.
    let call = ChatCall::new(Arc::default(), CallContext::new("other"));
    let asking = tokio::spawn(async move { gateway.chat(call).await });
    settle().await;
    assert!(!agent.is_idle());
    asking.abort();
}
