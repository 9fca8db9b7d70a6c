//! Evaluating sessions, with the subsystem and nothing of a host.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatClient, ChatErrorKind, Role};
use rockbot_core::config::Config;
use rockbot_core::context::Origin;
use rockbot_core::store::{
    ConversationMemory, ConversationTurn, FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryConversationMemory,
    InMemoryFeedbackStore, StoreError, TimelineStore,
};
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::turn::{EndedTurn, TurnObserver, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{AgentIdentity, Clock, Principal, SessionId, Timestamp};

use super::SessionEvaluation;

const MINUTE: Duration = Duration::from_secs(60);

const GOOD: &str = r#"{"summary":"They said hello.","correctionsMade":0,"overallQuality":"good"}"#;

/// Counts how often conversations are read.
#[derive(Debug, Default)]
struct Conversations(InMemoryConversationMemory, AtomicUsize);

#[async_trait]
impl ConversationMemory for Conversations {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        self.0.append(principal, session, entries).await
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.recent(principal, session, limit).await
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.0.clear(principal, session).await
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        self.0.sessions(principal).await
    }
}

/// The state that outlives a process, and its clock.
#[derive(Default)]
struct World {
    clock: ManualClock,
    conversations: Arc<Conversations>,
    feedback: Arc<InMemoryFeedbackStore>,
    model: ScriptedModel,
    config: Config,
    turns: AtomicUsize,
}

/// A process.
struct Process {
    observers: Vec<Arc<dyn TurnObserver>>,
    running: Box<dyn Running>,
}

impl World {
    fn asking(model: ScriptedModel) -> Self {
        Self {
            model,
            ..Self::default()
        }
    }

    async fn start(&self, folder: Option<&Path>) -> Process {
        let identity = AgentIdentity::new("test");
        let mut parts = Parts::new(identity, Arc::new(self.clock.clone()), folder.map(Path::to_owned));
        let model = self.model.clone();
        parts.provide::<dyn ChatClient>(Arc::new(model));
        parts.provide::<dyn ConversationMemory>(self.conversations.clone());
        parts.provide::<dyn FeedbackStore>(self.feedback.clone());
        parts.provide(Arc::new(self.config.clone()));
        let mut needs = Declarations::new(parts);
        let mut evaluation = Box::new(SessionEvaluation::default());
        evaluation.declare(&mut needs).unwrap();
        let declared = needs.merge();
        Process {
            observers: declared.observers,
            running: evaluation.start(&declared.parts).await.unwrap(),
        }
    }

    /// A turn of a session ends.
    async fn turn(&self, process: &Process, session: &str, origin: Origin) {
        let me = Principal::default();
        let now = self.clock.now();
        let message = self.turns.fetch_add(1, Ordering::SeqCst).to_string();
        let request = TurnRequest::new(session, message, "hello").with_origin(origin);
        let entry = |role, content: &str| ConversationTurn::new(role, content, now, request.turn_id());
        let said = vec![entry(Role::User, "hello"), entry(Role::Assistant, "hi")];
        self.conversations.append(&me, &session.into(), said).await.unwrap();
        let outcome = TurnOutcome::new(request.turn_id(), TurnStatus::Answered, "hi");
        for observer in &process.observers {
            observer.ended(&EndedTurn::new(&request, &outcome, now));
        }
    }

    /// Time goes by, for clocks and for timers.
    async fn pass(&self, minutes: u32) {
        for _ in 0..minutes {
            self.clock.advance(MINUTE);
            tokio::time::sleep(MINUTE).await;
        }
    }

    async fn summaries(&self) -> Vec<FeedbackEntry> {
        let all = self
            .feedback
            .query_recent(&Principal::default(), Timestamp::default(), 100)
            .await;
        let mut all = all.unwrap();
        all.retain(|entry| entry.signal_type == FeedbackSignal::SessionSummary);
        all
    }

    /// Checks how often the model was asked so far, and of which sessions there are summaries.
    #[track_caller]
    fn check(&self, asked: usize, summaries: &[FeedbackEntry], sessions: &[&str]) {
        assert_eq!(self.model.requests().len(), asked);
        let of: Vec<_> = summaries.iter().map(|entry| entry.session_id.as_str()).collect();
        assert_eq!(of, sessions);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_evaluated_once_and_again_when_it_goes_on() {
    let world = World::asking(ScriptedModel::new().says(GOOD).says(GOOD));
    let process = world.start(None).await;
    world.turn(&process, "s", Origin::User).await;
    world.pass(9).await;
    world.check(0, &world.summaries().await, &[]);
    assert_eq!(
        world.conversations.1.load(Ordering::SeqCst),
        0,
        "waiting sessions are not read"
    );

    world.pass(2).await;
    let summaries = world.summaries().await;
    world.check(1, &summaries, &["s"]);
    assert_eq!(summaries[0].summary, "They said hello.");
    let detail = r#"{"summary":"They said hello.","toolsWorkedWell":[],"toolsFailedOrMissed":[],"correctionsMade":0,"overallQuality":"good"}"#;
    assert_eq!(summaries[0].detail.as_deref(), Some(detail));

    world.pass(60).await;
    world.check(1, &world.summaries().await, &["s"]);
    world.turn(&process, "s", Origin::Bus).await;
    world.pass(20).await;
    world.check(2, &world.summaries().await, &["s", "s"]);
}

#[tokio::test(start_paused = true)]
async fn the_settings_say_when() {
    let file = r#"{ "Feedback": { "SessionIdleThreshold": "00:30:00", "PollInterval": "00:01:00" } }"#;
    let world = World {
        config: Config::new().with_text("agent.json", file).unwrap(),
        ..World::asking(ScriptedModel::new().says(GOOD))
    };
    let process = world.start(None).await;
    world.turn(&process, "s", Origin::User).await;
    world.pass(29).await;
    world.check(0, &world.summaries().await, &[]);
    world.pass(2).await;
    world.check(1, &world.summaries().await, &["s"]);
}

#[tokio::test(start_paused = true)]
async fn the_model_reads_the_conversation_as_data_and_our_directive() {
    let world = World::asking(ScriptedModel::new().says(GOOD));
    let process = world.start(None).await;
    world.turn(&process, "s", Origin::User).await;
    world.pass(20).await;
    let request = &world.model.requests()[0];
    let texts: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
    assert!(texts[0].starts_with("You look back at a conversation"));
    let (before, after) = texts[1].split_once("User: hello\nAgent: hi\n").expect("the transcript");
    let (_, mark) = before.trim_end().rsplit_once("<session ").expect("a mark");
    assert!(after.starts_with(&format!("</session {mark}\nAnswer with one JSON object")));
}

#[tokio::test(start_paused = true)]
async fn only_sessions_of_people_are_evaluated() {
    let world = World::default();
    let process = world.start(None).await;
    world.turn(&process, "patrol", Origin::Scheduled).await;
    world.turn(&process, "helper", Origin::Subagent).await;
    world.pass(60).await;
    world.check(0, &[], &[]);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_later_and_later() {
    let model = ScriptedModel::new()
        .fails(ChatErrorKind::Overloaded)
        .says("It went well.")
        .fails(ChatErrorKind::RateLimited)
        .says(GOOD);
    let world = World::asking(model);
    let process = world.start(None).await;
    world.turn(&process, "s", Origin::User).await;
    let mut asked_after = Vec::new();
    for minute in 1..=90 {
        world.pass(1).await;
        if asked_after.len() < world.model.requests().len() {
            asked_after.push(minute);
        }
    }
    let pauses: Vec<_> = asked_after.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [5, 10, 20]);
    world.check(4, &world.summaries().await, &["s"]);
    process.running.check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_forgets_no_session_and_evaluates_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(ScriptedModel::new().says(GOOD).says(GOOD));
    let process = world.start(Some(folder.path())).await;
    world.turn(&process, "first", Origin::User).await;
    world.pass(11).await;
    world.turn(&process, "second", Origin::User).await;
    process.running.stop().await;
    drop(process);
    world.check(1, &world.summaries().await, &["first"]);

    let process = world.start(Some(folder.path())).await;
    world.pass(60).await;
    world.check(2, &world.summaries().await, &["first", "second"]);
    process.running.stop().await;
    drop(process);
    let _process = world.start(Some(folder.path())).await;
    world.pass(60).await;
    world.check(2, &world.summaries().await, &["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_behind_the_summary_asks_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(ScriptedModel::new().says(GOOD));
    let process = world.start(Some(folder.path())).await;
    world.turn(&process, "s", Origin::User).await;
    let file = folder.path().join("evaluation/waiting.json");
    world.pass(1).await;
    let saved = std::fs::read(&file).unwrap();
    world.pass(20).await;
    process.running.stop().await;
    drop(process);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[]");

    std::fs::write(&file, saved).unwrap();
    let process = world.start(Some(folder.path())).await;
    world.pass(20).await;
    world.check(1, &world.summaries().await, &["s"]);
    process.running.stop().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[]");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_went_on_unseen_waits_until_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(ScriptedModel::new().says(GOOD));
    let process = world.start(Some(folder.path())).await;
    world.turn(&process, "s", Origin::User).await;
    world.pass(9).await;
    // The file still has the time of the first one.
    world.turn(&process, "s", Origin::User).await;
    process.running.stop().await;
    drop(process);

    let _process = world.start(Some(folder.path())).await;
    world.pass(9).await;
    world.check(0, &[], &[]);
    world.pass(6).await;
    world.check(1, &world.summaries().await, &["s"]);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_is_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evaluation/waiting.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[{\"half").unwrap();
    let world = World::default();
    let process = world.start(Some(folder.path())).await;
    assert!(file.with_file_name("waiting.json.damaged").exists());
    process.running.check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn people_can_say_how_to_judge() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(ScriptedModel::new().says(GOOD).says(GOOD));
    let process = world.start(Some(folder.path())).await;
    let file = folder.path().join("session-evaluator.md");
    for text in ["Be strict.", "  \n"] {
        std::fs::write(&file, text).unwrap();
        world.turn(&process, "s", Origin::User).await;
        world.pass(20).await;
    }
    let told: Vec<_> = world
        .model
        .requests()
        .iter()
        .map(|request| request.messages[0].text().into_owned())
        .collect();
    assert_eq!(told[0], "Be strict.");
    assert!(told[1].starts_with("You look back"));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_conversation_is_nothing_to_evaluate() {
    let world = World::default();
    let process = world.start(None).await;
    world.turn(&process, "s", Origin::User).await;
    world
        .conversations
        .clear(&Principal::default(), &"s".into())
        .await
        .unwrap();
    world.pass(60).await;
    world.check(0, &[], &[]);
    assert_eq!(world.conversations.1.load(Ordering::SeqCst), 1, "it waits no more");
}
