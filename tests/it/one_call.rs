//! The counterparts of the original's `With…` methods: each alone does the whole.

use std::time::Duration;

use rockbot::agent::AgentHost;
use rockbot::agent::profile::{AgentProfileOptions, DefaultSystemPromptBuilder};
use rockbot::implement::store::{StorePath, WorkingNote};
use rockbot::memory::{Memory, SessionEvaluation};
use rockbot::store::{
    ConversationLog, FeedbackStore, LongTermMemory, MemoryEntry, Rule, RulesStore, Skill, SkillStore, WorkingMemory,
};
use rockbot::testing::{ManualClock, ScriptedModel};
use rockbot_core::chat::Provenance;
use rockbot_core::{Clock, Principal, SystemClock, Timestamp};
use serde_json::json;

/// Returns the texts of a request, and the names of all tools of the host, shown or on demand.
struct Seen {
    texts: String,
    tools: Vec<String>,
}

impl Seen {
    fn of(host: &AgentHost, model: &ScriptedModel) -> Self {
        let requests = model.requests();
        let messages = requests[0].messages.iter();
        let entries = host.tools().snapshot();
        let names = entries
            .entries()
            .iter()
            .map(|tool| tool.registration().name.to_string());
        Self {
            texts: messages.map(|message| message.text().into_owned()).collect(),
            tools: names.collect(),
        }
    }

    #[track_caller]
    fn check(&self, text: &str, has: &[&str], has_not: &[&str]) {
        assert!(self.texts.contains(text), "{text}: {}", self.texts);
        let offers = |name: &&&str| self.tools.iter().any(|tool| tool == **name);
        assert!(has.iter().all(|name| offers(&name)), "{has:?}: {:?}", self.tools);
        assert!(
            !has_not.iter().any(|name| offers(&name)),
            "{has_not:?}: {:?}",
            self.tools
        );
    }
}

fn me() -> Principal {
    Principal::default()
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).unwrap()
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn built(memory: Memory) -> (AgentHost, ScriptedModel) {
    let model = ScriptedModel::new().says("Well.");
    (
        AgentHost::in_memory().chat(model.clone()).add(memory).build().unwrap(),
        model,
    )
}

async fn asked(host: &AgentHost, model: &ScriptedModel, text: &str) -> Seen {
    host.agent().ask("s", text).await.unwrap();
    Seen::of(host, model)
}

async fn remember(host: &AgentHost) {
    let entry = MemoryEntry::new("m1", "The zebra is called Anton.", now(), Provenance::USER);
    let memory = host.parts().get::<dyn LongTermMemory>().unwrap();
    memory.save(&me(), entry).await.unwrap();
}

async fn note(host: &AgentHost) {
    let memory = host.parts().get::<dyn WorkingMemory>().unwrap();
    let note = WorkingNote::new(path("session/s/zebra"), "It has stripes.", Provenance::TOOL);
    memory
        .put(&me(), vec![note.with_ttl(Duration::from_secs(3_600))])
        .await
        .unwrap();
}

#[tokio::test]
async fn with_long_term_memory() {
    let (host, model) = built(Memory::none().with_long_term());
    remember(&host).await;
    let seen = asked(&host, &model, "What is the zebra called?").await;
    seen.check(
        "The zebra is called Anton.",
        &["save_memory", "search_memory"],
        &["change_rules", "get_skill", "save_to_working_memory"],
    );
}

#[tokio::test]
async fn with_working_memory() {
    let (host, model) = built(Memory::none().with_working());
    note(&host).await;
    let seen = asked(&host, &model, "What of the zebra?").await;
    seen.check(
        "zebra",
        &["save_to_working_memory", "get_from_working_memory"],
        &["save_memory", "change_rules"],
    );
    assert!(
        seen.texts.contains("session/s/zebra") || seen.texts.contains("It has stripes."),
        "{}",
        seen.texts
    );
}

#[tokio::test]
async fn with_memory() {
    let (host, model) = built(Memory::none().with_long_term().with_working());
    remember(&host).await;
    note(&host).await;
    let seen = asked(&host, &model, "What is the zebra called?").await;
    seen.check(
        "The zebra is called Anton.",
        &["save_memory", "save_to_working_memory"],
        &["change_rules", "get_skill"],
    );
}

#[tokio::test]
async fn with_rules() {
    let (host, model) = built(Memory::none().with_rules());
    let rules = host.parts().get::<dyn RulesStore>().unwrap();
    rules
        .add(&me(), Rule::new("Answer in Norwegian.").unwrap())
        .await
        .unwrap();
    let seen = asked(&host, &model, "Hello.").await;
    seen.check(
        "Answer in Norwegian.",
        &["change_rules", "set_timezone"],
        &["save_memory", "get_skill"],
    );
}

#[tokio::test]
async fn with_skills() {
    let (host, model) = built(Memory::none().with_skills());
    let skills = host.parts().get::<dyn SkillStore>().unwrap();
    let skill = Skill::new(path("zebras"), "Brush them daily.", now(), Provenance::USER);
    skills
        .save(&me(), skill.with_summary("how to care for zebras"))
        .await
        .unwrap();
    let seen = asked(&host, &model, "How do I care for zebras?").await;
    seen.check(
        "Brush them daily.",
        &["get_skill", "save_skill"],
        &["save_memory", "change_rules"],
    );
}

#[tokio::test]
async fn with_conversation_log() {
    let (host, model) = built(Memory::none().with_conversation_log());
    let seen = asked(&host, &model, "Hello.").await;
    seen.check(
        "Hello.",
        &[],
        &["save_memory", "change_rules", "get_skill", "save_to_working_memory"],
    );
    let log = host.parts().get::<dyn ConversationLog>().unwrap();
    let read = log.read(&me(), "reader", 10).await.unwrap();
    assert_eq!(format!("{read:?}").matches("Hello.").count(), 1, "{read:?}");
}

#[tokio::test(start_paused = true)]
async fn with_feedback() {
    let verdict = json!({"summary": "A greeting.", "toolsWorkedWell": [], "toolsFailedOrMissed": [],
        "correctionsMade": [], "overallQuality": "good"});
    let model = ScriptedModel::new().says("Well.").says(verdict.to_string());
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(now());
    let builder = AgentHost::in_memory()
        .chat(model.clone())
        .data_dir(folder.path())
        .clock(clock.clone());
    let host = builder.add(SessionEvaluation::default()).build().unwrap();
    host.start().await.unwrap();
    host.agent().ask("s", "Hello.").await.unwrap();
    let store = host.parts().get::<dyn FeedbackStore>().unwrap();
    let mut found = Vec::new();
    for _ in 0..60 {
        clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_secs(60)).await;
        found = store.query_recent(&me(), Timestamp::from_millis(0), 10).await.unwrap();
        if !found.is_empty() {
            break;
        }
    }
    assert!(format!("{found:?}").contains("A greeting."), "{found:?}");
    assert!(folder.path().join("feedback").is_dir());
    host.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn with_profile() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("soul.md"), "You love zebras.").unwrap();
    std::fs::write(folder.path().join("directives.md"), "Be brief.").unwrap();
    let model = ScriptedModel::new().says("Well.");
    let builder = AgentHost::builder("keeper").chat(model.clone());
    let builder = builder.profile(AgentProfileOptions::new(folder.path()), DefaultSystemPromptBuilder);
    let host = builder.build().unwrap();
    let seen = asked(&host, &model, "Hello.").await;
    seen.check("You love zebras.", &[], &[]);
    assert!(
        seen.texts.contains("keeper") && seen.texts.contains("Be brief."),
        "{}",
        seen.texts
    );
}

#[tokio::test]
async fn parts_that_are_added_one_by_one_are_one_memory() {
    let model = ScriptedModel::new().says("Well.");
    let builder = AgentHost::in_memory().chat(model.clone());
    let builder = builder
        .add(Memory::none().with_rules())
        .add(Memory::none().with_long_term());
    let host = builder
        .add(SessionEvaluation::default())
        .add(Memory::none().with_feedback())
        .build()
        .unwrap();
    remember(&host).await;
    let seen = asked(&host, &model, "What is the zebra called?").await;
    seen.check(
        "The zebra is called Anton.",
        &["save_memory", "change_rules"],
        &["get_skill"],
    );
}
