//! Dreaming, with the subsystem and nothing of a host.

mod faults;
mod kills;
mod passes;
mod plans;
mod soak;
mod speed;
mod stores;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatClient, Role};
use rockbot_core::content::Provenance;
use rockbot_core::store::{
    ConversationLog, FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryConversationLog, InMemoryFeedbackStore,
    InMemorySkillUsageStore, LogEntry, LongTermMemory, MemoryEntry, RulesStore, Skill, SkillStore, SkillUsage,
    SkillUsageStore, TimelineStore,
};
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::testing::{ManualClock, ScriptedModel, SequentialIds};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{AgentIdentity, Clock, IdSource, Principal, Timestamp};

pub(super) use self::stores::{Memories, Rules, Skills, Writes};
use super::{DreamOptions, DreamPass, DreamPlan, Dreaming, Dreams};

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The state that outlives a process, and its clock.
pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) writes: Arc<Writes>,
    pub(super) memory: Arc<Memories>,
    /// A memory around `memory` that the process has in its place.
    pub(super) semantic: Option<Arc<dyn LongTermMemory>>,
    pub(super) skills: Arc<Skills>,
    pub(super) usage: Arc<InMemorySkillUsageStore>,
    pub(super) feedback: Arc<InMemoryFeedbackStore>,
    pub(super) rules: Arc<Rules>,
    pub(super) log: Arc<InMemoryConversationLog>,
    pub(super) ids: Arc<SequentialIds>,
    pub(super) chat: Arc<dyn ChatClient>,
    pub(super) options: DreamOptions,
    /// The times of cycles; `None` means the interval.
    pub(super) times: Option<fn(Timestamp) -> Option<Timestamp>>,
}

/// A process.
pub(super) struct Process {
    pub(super) dreams: Arc<Dreams>,
    pub(super) running: Box<dyn Running>,
}

impl World {
    pub(super) fn asking(chat: impl ChatClient) -> Self {
        let writes = Arc::default();
        Self {
            clock: ManualClock::new(Timestamp::from_millis(1_800_000_000_000)),
            memory: Arc::new(Memories::new(&writes)),
            semantic: None,
            skills: Arc::new(Skills::new(&writes)),
            usage: Arc::default(),
            feedback: Arc::default(),
            rules: Arc::new(Rules::new(&writes)),
            writes,
            log: Arc::default(),
            ids: Arc::default(),
            chat: Arc::new(chat),
            options: DreamOptions::default(),
            times: None,
        }
    }

    /// Only these passes are on.
    pub(super) fn only(mut self, passes: &[DreamPass]) -> Self {
        let others = DreamPass::ALL.into_iter().filter(|pass| !passes.contains(pass));
        self.options = self.options.with_disabled(others);
        self
    }

    /// These passes apply their plans at once.
    pub(super) fn applying(mut self, passes: &[DreamPass]) -> Self {
        self.options = self.options.with_auto_apply(passes.iter().copied());
        self
    }

    pub(super) async fn start(&self, folder: Option<&Path>) -> Process {
        let identity = AgentIdentity::new("test");
        let mut parts = Parts::new(identity, Arc::new(self.clock.clone()), folder.map(Path::to_owned));
        parts.provide::<dyn ChatClient>(self.chat.clone());
        let memory = self.semantic.clone().unwrap_or_else(|| self.memory.clone());
        parts.provide::<dyn LongTermMemory>(memory);
        parts.provide::<dyn SkillStore>(self.skills.clone());
        parts.provide::<dyn SkillUsageStore>(self.usage.clone());
        parts.provide::<dyn FeedbackStore>(self.feedback.clone());
        parts.provide::<dyn RulesStore>(self.rules.clone());
        parts.provide::<dyn ConversationLog>(self.log.clone());
        parts.provide::<dyn IdSource>(self.ids.clone());
        let mut needs = Declarations::new(parts);
        let dreaming = Dreaming::new().with_options(self.options.clone());
        let mut dreaming = Box::new(match self.times {
            Some(next) => dreaming.with_times(next),
            None => dreaming,
        });
        dreaming.declare(&mut needs).unwrap();
        let declared = needs.merge();
        let running = dreaming.start(&declared.parts).await.unwrap();
        Process {
            dreams: declared.parts.require::<Dreams>().unwrap(),
            running,
        }
    }

    /// Saves a memory of the user that was learned `days` ago.
    pub(super) async fn remembers(&self, id: &str, content: &str, days: u32) {
        self.saves(id, content, days, Provenance::USER).await;
    }

    pub(super) async fn saves(&self, id: &str, content: &str, days: u32, from: Provenance) {
        let ago = DAY * days;
        let at = Timestamp::from_millis(self.clock.now().as_millis() - ago.as_millis() as u64);
        let entry = MemoryEntry::new(id, content, at, from);
        self.memory.inner.save(&Principal::default(), entry).await.unwrap();
    }

    pub(super) async fn says(&self, session: &str, content: &str) {
        let entry = LogEntry::new(session, Role::User, content, self.clock.now());
        let entry = entry.with_label(Label::USER).with_trust(Trust::User);
        self.log.append(&Principal::default(), vec![entry]).await.unwrap();
    }

    pub(super) async fn corrected(&self, id: &str, session: &str, words: &str) {
        let entry = FeedbackEntry::new(
            id,
            session,
            FeedbackSignal::Correction,
            "The user said it was wrong.",
            self.clock.now(),
        );
        self.feedback
            .append(&Principal::default(), entry.with_detail(words))
            .await
            .unwrap();
    }

    pub(super) async fn uses(&self, skill: &str, session: &str) {
        let used = SkillUsage::new(format!("{skill}-{session}"), path(skill), session, self.clock.now());
        self.usage.append(&Principal::default(), used).await.unwrap();
    }

    pub(super) async fn can(&self, name: &str, content: &str) {
        let skill = Skill::new(path(name), content, self.clock.now(), Provenance::USER);
        self.skills.save(&Principal::default(), skill).await.unwrap();
    }

    /// Returns the live memories: ids and texts.
    pub(super) async fn live(&self) -> Vec<String> {
        let entries = self.all().await;
        let live = entries.iter().filter(|entry| entry.is_live());
        live.map(|entry| format!("{}: {}", entry.id, entry.content)).collect()
    }

    pub(super) async fn all(&self) -> Vec<Arc<MemoryEntry>> {
        self.memory.list(&Principal::default()).await.unwrap()
    }
}

impl Process {
    /// Runs a cycle, and returns all plans as a person reads them.
    pub(super) async fn dream(&self) -> Vec<String> {
        self.dreams.dream().await.unwrap();
        self.shown()
    }

    pub(super) fn shown(&self) -> Vec<String> {
        self.plans().iter().map(|plan| plan.to_string()).collect()
    }

    pub(super) fn plans(&self) -> Vec<Arc<DreamPlan>> {
        self.dreams.plans().unwrap()
    }

    pub(super) async fn stop(self) {
        self.running.stop().await;
    }
}

pub(super) fn path(name: &str) -> rockbot_core::store::StorePath {
    rockbot_core::store::StorePath::new(name).unwrap()
}

pub(super) fn silent() -> ScriptedModel {
    ScriptedModel::new()
}

/// Returns the log that a person reads.
pub(super) fn log_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("dreams/dreams.log")).unwrap_or_default()
}
