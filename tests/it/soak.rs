//! A day of an agent in virtual time, with faults of model, tools, bus and disk: each message
//! gets exactly one final reply, and nothing is left over.
//!
//! `ROCKBOT_TEST_SEED` repeats the run of a seed that a failure prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot::memory::{FeedbackSignals, Memory, SessionEvaluation};
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, ToolCall,
};
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, Delivery, DeliveryHandler, Disposition, MessageEnvelope, MessagePublisher,
    MessageSubscriber, MessageSubscriberExt, Reach, SubscribeOptions, Subscription, TopicPattern,
};
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::tool::{
    Effect, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::turn::{JournalError, RunQuery, TurnJournal};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_core::{CallContext, Clock, Timestamp};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, BacklogLimits, Busy, Stores, TurnError, TurnPolicies};
use rockbot_store::file::{FileTurnJournal, JournalOptions};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::support::journal::{Around, Counting};
use crate::support::{settle, unguarded};

const MINUTE: Duration = Duration::from_secs(60);

/// Messages that the host accepts at once.
const BACKLOG: usize = 40;

/// A message to the model that is held until the test lets it go.
const HOLD: &str = "hold";

/// The world around the agent: it decides by its seed what fails.
#[derive(Debug)]
struct World {
    seed: u64,
    state: AtomicU64,
    is_faulty: AtomicBool,
    bus_is_down: AtomicBool,
    calls: AtomicU64,
    /// Number of runs of each mutating call.
    effects: Mutex<BTreeMap<String, u32>>,
    held: Semaphore,
    begun: Instant,
}

impl World {
    fn new() -> Arc<Self> {
        let seed = std::env::var("ROCKBOT_TEST_SEED").map_or(20_260_101, |text| text.parse().expect("a number"));
        Arc::new(Self {
            seed,
            state: AtomicU64::new(seed),
            is_faulty: AtomicBool::new(true),
            bus_is_down: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            effects: Mutex::default(),
            held: Semaphore::new(0),
            begun: Instant::now(),
        })
    }

    /// Returns a number below `limit`: SplitMix64.
    fn below(&self, limit: u64) -> u64 {
        let mut number = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % limit
    }

    /// Returns a number below 1000 while there are faults, and 999 after that.
    fn fate(&self) -> u64 {
        if self.is_faulty.load(Ordering::Relaxed) {
            self.below(1_000)
        } else {
            999
        }
    }
}

/// The wall clock of virtual time.
#[derive(Debug)]
struct VirtualClock(Arc<World>);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = u64::try_from(self.0.begun.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(1_790_000_000_000 + passed)
    }
}

struct Model(Arc<World>);

#[async_trait]
impl ChatClient for Model {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let world = &self.0;
        if call.request.messages.iter().any(|message| message.text() == HOLD) {
            world.held.acquire().await.unwrap().forget();
            return Ok(ChatResponse::text("Held."));
        }
        let failed = |kind| Err(ChatError::new(kind, "the day is like that"));
        match world.fate() {
            0..=29 => failed(ChatErrorKind::Overloaded),
            30..=39 => failed(ChatErrorKind::CutStream),
            40..=44 => failed(ChatErrorKind::ContextOverflow),
            45..=49 => failed(ChatErrorKind::Other),
            50..=52 => std::future::pending().await,
            53..=55 => panic!("the model client breaks down"),
            56..=65 => Ok(ChatResponse::text("")),
            66..=85 => {
                sleep(Duration::from_secs(world.below(400))).await;
                Ok(ChatResponse::text("That took a while."))
            }
            86..=399 if !call.request.tools.is_empty() => Ok(self.calls()),
            _ => Ok(ChatResponse::text("Done: [x](https://evil.example/?q=1).")),
        }
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

impl Model {
    fn calls(&self) -> ChatResponse {
        let call = |_| {
            let number = self.0.calls.fetch_add(1, Ordering::Relaxed);
            let world = &self.0;
            let name = ["look", "put", "send", "save_memory", "nothing"][world.below(5) as usize];
            let arguments = ["{}", r#"{"content":"The door is green."}"#, "{", r#"{"x":[["#][world.below(4) as usize];
            ToolCall::new(format!("call-{number}"), name, arguments)
        };
        ChatResponse::calls((0..=self.0.below(3)).map(call).collect::<Vec<_>>())
    }
}

/// A tool that fails in each way a tool can.
#[derive(Debug)]
struct Acting(Arc<World>);

#[async_trait]
impl ToolExecutor for Acting {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        if request.tool_name == "send" {
            *self
                .0
                .effects
                .lock()
                .unwrap()
                .entry(request.tool_call_id.to_string())
                .or_default() += 1;
        }
        match self.0.fate() {
            0..=49 => return Err(ToolError::execution_failed("the door is locked")),
            50..=69 => panic!("the tool breaks down"),
            70..=74 => std::future::pending().await,
            75..=99 => sleep(Duration::from_secs(self.0.below(200))).await,
            100..=109 => return Ok(request.succeed("long ".repeat(30_000))),
            _ => tokio::task::yield_now().await,
        }
        Ok(request.succeed("done"))
    }
}

fn tools(world: &Arc<World>) -> impl Iterator<Item = Tool> {
    let kinds = [
        ("look", Effect::Pure),
        ("put", Effect::Idempotent),
        ("send", Effect::Mutating),
    ];
    kinds.into_iter().map(|(name, effect)| {
        let registration = ToolRegistration::new(name, "Acts.", json!({"type": "object"}));
        Tool::new(registration, Acting(world.clone())).effect(effect)
    })
}

/// A disk on which one write or read of the journal in 200 fails.
#[derive(Debug)]
struct BadDisk(Arc<World>);

impl BadDisk {
    fn fate(&self) -> Result<(), JournalError> {
        match self.0.fate() {
            0..=4 => Err(StoreError::new(StoreErrorKind::Damaged, "a bad sector").into()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Around for BadDisk {
    async fn before(&self, _: usize) -> Result<(), JournalError> {
        self.fate()
    }

    async fn before_read(&self) -> Result<(), JournalError> {
        self.fate()
    }
}

/// A bus that loses its broker for a while, and a publication in 50.
#[derive(Debug, Clone)]
struct BadBus(InProcessBus, Arc<World>);

#[async_trait]
impl MessagePublisher for BadBus {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        if self.1.bus_is_down.load(Ordering::Relaxed) || self.1.fate() < 20 {
            return Err(BusError::Provider {
                context: "the broker does not answer".to_owned(),
                source: "connection refused".into(),
            });
        }
        self.0.publish(topic, envelope).await
    }
}

#[async_trait]
impl MessageSubscriber for BadBus {
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
impl Bus for BadBus {
    async fn close(&self, within: Duration) -> CloseReport {
        self.0.close(within).await
    }
}

/// The ids of the final replies to each message.
type Replies = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

struct Day {
    world: Arc<World>,
    folder: tempfile::TempDir,
    bus: InProcessBus,
    replies: Replies,
    sent: Vec<Arc<MessageEnvelope>>,
    host: Option<AgentHost>,
    _listening: Subscription,
}

impl Day {
    async fn begin() -> Self {
        let world = World::new();
        let bus = InProcessBus::new();
        let replies = Replies::default();
        let got = replies.clone();
        let listener = move |delivery: Delivery| {
            let reply: AgentReply = delivery.envelope.payload().unwrap();
            if reply.is_final {
                let to = delivery.envelope.correlation_id.as_deref().unwrap().to_owned();
                let id = delivery.envelope.message_id.to_string();
                got.lock().unwrap().entry(to).or_default().insert(id);
            }
            async { Disposition::Ack }
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            _listening: bus.on("desk", "the desk", listener).await.unwrap(),
            world,
            bus,
            replies,
            sent: Vec::new(),
            host: None,
        }
    }

    /// Ends the host, if there is one, and begins another one on the same folder; then the broker
    /// delivers again what is not answered.
    async fn restart(&mut self) {
        self.stop().await;
        let world = &self.world;
        let data = self.folder.path();
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock(world.clone()));
        let options = JournalOptions::default().with_clock(clock.clone());
        let journal = FileTurnJournal::open_with(data.join("turns"), options).unwrap();
        let limits = BacklogLimits::new().with_max_messages(BACKLOG);
        let builder = AgentHost::builder("clerk")
            .policies(unguarded())
            .chat(Model(world.clone()))
            .data_dir(data)
            .clock(clock)
            .stores(Stores::new().with_journal(Counting::new(journal, BadDisk(world.clone()))))
            .policies(TurnPolicies::new().with_backlog(limits))
            .shared_bus(Arc::new(BadBus(self.bus.clone(), world.clone())))
            .serve_users()
            .add(Memory::default().with_conversation_log())
            .add(FeedbackSignals::new())
            .add(SessionEvaluation::default());
        let host = tools(world)
            .fold(builder, |builder, tool| builder.tool(tool))
            .build()
            .unwrap();
        // A read of the journal may fail, and then a supervisor tries again.
        while let Err(error) = host.start().await {
            assert!(self.world.is_faulty.load(Ordering::Relaxed), "{error}");
            sleep(MINUTE).await;
        }
        self.host = Some(host);
        for message in self.unanswered() {
            self.deliver(message).await;
        }
    }

    async fn stop(&mut self) {
        if let Some(host) = self.host.take() {
            host.shutdown(Duration::from_secs(self.world.below(20))).await;
        }
        settle().await;
    }

    fn unanswered(&self) -> Vec<Arc<MessageEnvelope>> {
        let replies = self.replies.lock().unwrap();
        let is_open = |message: &&Arc<MessageEnvelope>| !replies.contains_key(message.message_id.as_str());
        self.sent.iter().filter(is_open).cloned().collect()
    }

    async fn deliver(&self, message: Arc<MessageEnvelope>) {
        self.bus.publish("user.message", message).await.unwrap();
    }

    async fn send(&mut self) {
        let id = format!("m{}", self.sent.len());
        let text = ["That's wrong.", "Look at the door.", "Tell me all."][self.world.below(3) as usize];
        let session = format!("s{}", self.world.below(6));
        let user = ["", "ann", "bob"][self.world.below(3) as usize];
        let message = MessageEnvelope::of(&UserMessage::new(session, text).with_user_id(user)).unwrap();
        let message = message
            .with_source("desk")
            .with_reply_to("desk")
            .with_correlation_id(&*id)
            .with_id(id);
        let message = Arc::new(message);
        self.sent.push(message.clone());
        self.deliver(message).await;
    }

    /// Lets the world go on for `hours`, with so many messages an hour.
    async fn live(&mut self, hours: u64, messages: u64) {
        self.restart().await;
        let end = self.world.begun + Duration::from_secs(hours * 3_600);
        while Instant::now() < end {
            sleep(Duration::from_secs(self.world.below(2 * 3_600 / messages))).await;
            match self.world.below(100) {
                0..=1 => self.restart().await,
                2 => self.world.bus_is_down.store(true, Ordering::Relaxed),
                3..=9 => self.world.bus_is_down.store(false, Ordering::Relaxed),
                10..=14 if !self.sent.is_empty() => {
                    let again = self.world.below(self.sent.len() as u64) as usize;
                    self.deliver(self.sent[again].clone()).await;
                }
                _ => self.send().await,
            }
        }
    }

    /// Ends all faults, and waits until all messages are answered.
    async fn calm_down(&mut self) {
        self.world.is_faulty.store(false, Ordering::Relaxed);
        self.world.bus_is_down.store(false, Ordering::Relaxed);
        sleep(30 * MINUTE).await;
        self.restart().await;
        for _ in 0..240 {
            if self.unanswered().is_empty() {
                break;
            }
            sleep(MINUTE).await;
        }
        // Background work and late reports end, too.
        sleep(30 * MINUTE).await;
    }

    fn check_replies(&self) {
        let seed = self.world.seed;
        let replies = self.replies.lock().unwrap();
        for message in &self.sent {
            let count = replies.get(message.message_id.as_str()).map_or(0, BTreeSet::len);
            assert_eq!(
                count, 1,
                "seed {seed}: message {} has {count} final replies",
                message.message_id
            );
        }
        assert_eq!(
            replies.len(),
            self.sent.len(),
            "seed {seed}: replies to messages that were not sent"
        );
        let effects = self.world.effects.lock().unwrap();
        let twice: Vec<_> = effects.iter().filter(|(_, count)| **count > 1).collect();
        assert!(
            twice.is_empty(),
            "seed {seed}: mutating calls that ran twice: {twice:?}"
        );
        assert!(!effects.is_empty(), "seed {seed}: no mutating call ran");
    }

    /// All places of the backlog are free again: that many messages are accepted, and the next one is
    /// refused.
    async fn check_permits(&self) {
        let seed = self.world.seed;
        let agent = self.host.as_ref().unwrap().agent().clone();
        let ask = |number| {
            let agent = agent.clone();
            tokio::spawn(async move {
                agent
                    .ask(format!("hold-{number}"), HOLD)
                    .await
                    .map(|answer| answer.text)
            })
        };
        let held: Vec<_> = (0..BACKLOG).map(ask).collect();
        sleep(MINUTE).await;
        let refused = ask(BACKLOG).await.unwrap();
        assert!(
            matches!(refused, Err(TurnError::Busy(Busy::Host { .. }))),
            "seed {seed}: {refused:?}"
        );
        self.world.held.add_permits(BACKLOG);
        for answer in held {
            assert_eq!(
                answer.await.unwrap().unwrap(),
                "Held.",
                "seed {seed}: a place of the backlog was lost"
            );
        }
        let shown = format!("{:?}", self.host);
        assert!(shown.contains("live: 0"), "seed {seed}: turns are left: {shown}");
    }

    /// Nothing is left of the host: no task, no open file, no unfinished turn.
    async fn check_end(mut self, tasks: usize) {
        let seed = self.world.seed;
        self.stop().await;
        for _ in 0..50 {
            settle().await;
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(
            Handle::current().metrics().num_alive_tasks(),
            tasks,
            "seed {seed}: tasks are left"
        );
        let open = open_files(self.folder.path());
        assert!(open.is_empty(), "seed {seed}: files are open: {open:?}");
        let journal = FileTurnJournal::open(self.folder.path().join("turns")).unwrap();
        let unfinished = journal.unfinished(&RunQuery::all()).await.unwrap();
        assert!(
            unfinished.is_empty(),
            "seed {seed}: turns are unfinished: {unfinished:?}"
        );
    }
}

/// Returns the files below `folder` that this process has open.
fn open_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|path| path.starts_with(folder)).collect()
}

/// Returns the memory of this process in KiB, where the system tells it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

async fn soak(hours: u64, messages: u64) {
    let mut day = Day::begin().await;
    settle().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    day.live(hours, messages).await;
    day.calm_down().await;
    day.check_replies();
    day.check_permits().await;
    day.check_end(tasks).await;
}

#[tokio::test(start_paused = true)]
async fn three_hours_with_faults_end_with_one_reply_to_each_message() {
    soak(3, 60).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn a_day_with_faults_ends_with_one_reply_to_each_message() {
    soak(24, 60).await;
}

/// Each day needs as much memory as the one before: run alone, since it measures the process.
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes, and measures the whole process"]
async fn days_after_the_first_need_no_more_memory() {
    soak(24, 60).await;
    let first = resident();
    for _ in 0..3 {
        soak(24, 60).await;
    }
    let last = resident();
    assert!(
        last < first + first / 4 + 20_000,
        "{first} KiB after one day, {last} KiB after four"
    );
}
