//! Retention: old entries are purged in the background.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::Provenance;
use rockbot_core::config::Config;
use rockbot_core::store::{
    FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryFeedbackStore, InMemoryLongTermMemory,
    InMemorySkillUsageStore, LongTermMemory, MemoryEntry, SkillUsage, SkillUsageStore, StorePath, TimelineStore,
};
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::{Clock, Principal, Timestamp};
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_memory::{Memory, Retention};

use crate::support::host_of;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An agent's entries, each named after its age in days.
#[derive(Default)]
struct Stores {
    clock: ManualClock,
    memory: Arc<InMemoryLongTermMemory>,
    feedback: Arc<InMemoryFeedbackStore>,
    uses: Arc<InMemorySkillUsageStore>,
}

impl Stores {
    /// Something of each kind, from so many days ago.
    async fn fill(&self, days: &[u64]) {
        let me = Principal::from("ann");
        for days in days {
            let millis = self.clock.now().as_millis() - days * DAY.as_secs() * 1000;
            let id = days.to_string();
            let timestamp = Timestamp::from_millis(millis);
            let mut entry = MemoryEntry::new(&*id, &*id, timestamp, Provenance::USER);
            entry.archived_at = Some(timestamp);
            self.memory.save(&me, entry).await.unwrap();
            let entry = FeedbackEntry::new(id.clone(), "s", FeedbackSignal::Correction, String::new(), timestamp);
            self.feedback.append(&me, entry).await.unwrap();
            let usage = SkillUsage::new(id, StorePath::new("skill").unwrap(), "s", timestamp);
            self.uses.append(&me, usage).await.unwrap();
        }
    }

    fn host(&self, memory: Memory) -> AgentHostBuilder {
        host_of(&ScriptedModel::new())
            .clock(self.clock.clone())
            .give::<dyn LongTermMemory>(self.memory.clone())
            .give::<dyn FeedbackStore>(self.feedback.clone())
            .give::<dyn SkillUsageStore>(self.uses.clone())
            .add(memory)
    }

    /// Returns what is left of memories, feedback and uses.
    async fn check(&self, expected: [&[&str]; 3]) {
        let me = Principal::from("ann");
        let all = Timestamp::default();
        let memories = self.memory.list(&me).await.unwrap();
        let feedback = self.feedback.query_recent(&me, all, usize::MAX).await.unwrap();
        let uses = self.uses.query_recent(&me, all, usize::MAX).await.unwrap();
        let memories: Vec<_> = memories.iter().map(|entry| entry.id.as_str()).collect();
        let feedback: Vec<_> = feedback.iter().map(|entry| &*entry.id).collect();
        let uses: Vec<_> = uses.iter().map(|entry| &*entry.id).collect();
        assert_eq!([&*memories, &*feedback, &*uses], expected);
    }
}

async fn started(builder: AgentHostBuilder) -> AgentHost {
    let host = builder.build().unwrap();
    host.start().await.unwrap();
    host
}

async fn minutes(minutes: u64) {
    tokio::time::sleep(Duration::from_secs(minutes * 60)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_goes_in_the_background() {
    let stores = Stores::default();
    stores.fill(&[181, 91, 89]).await;
    let all: &[&str] = &["181", "91", "89"];
    let host = started(stores.host(Memory::default())).await;
    minutes(4).await;
    stores.check([&["181", "89", "91"], all, all]).await;
    minutes(2).await;
    stores.check([&["89"], &["89"], &["91", "89"]]).await;
    stores.clock.advance(2 * DAY);
    minutes(6 * 60).await;
    stores.check([&[], &[], &["91", "89"]]).await;
    host.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn how_long_is_said_in_settings_and_in_code_which_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{
        "Memory": { "ArchiveRetention": "10.00:00:00" },
        "Feedback": { "Retention": "20.00:00:00" },
        "Skills": { "UsageRetention": "30.00:00:00" }
    }"#;
    let config = Config::new().with_text("agent.json", file).unwrap();
    let settings = HostSettings::read(&config, folder.path()).unwrap();
    let retention = Retention::default().with_archived(Duration::MAX).with_max_lines(1);
    for (memory, expected) in [
        (Memory::default(), [&[][..], &["15"], &["25", "15"]]),
        (
            Memory::default().retention(retention),
            [&["15", "25", "35"], &["15"], &["15"]],
        ),
    ] {
        let stores = Stores::default();
        stores.fill(&[35, 25, 15]).await;
        let host = started(stores.host(memory).settings(&settings)).await;
        minutes(6).await;
        stores.check(expected).await;
        host.shutdown(Duration::from_secs(1)).await;
    }
    assert_eq!(config.unknown(), []);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_agents_is_left_alone() {
    let stores = Stores::default();
    stores.fill(&[500]).await;
    let host = started(stores.host(Memory::default().without_long_term().without_skills())).await;
    minutes(6).await;
    stores.check([&["500"], &[], &["500"]]).await;
    host.shutdown(Duration::from_secs(1)).await;
}
