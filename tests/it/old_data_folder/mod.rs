//! A data folder of an earlier version: it opens, and today's stores write the same bytes.
//!
//! `files/` was written by this test on 2026-11-27, before the stores had a crate of their own;
//! `UPDATE_DATA_FOLDER` set writes it again, which only a new format needs. Of the
//! SQLite file only the content is compared, since its pages depend on the version of SQLite.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rockbot::chat::Role;
use rockbot::content::Provenance;
use rockbot::implement::store::{
    FeedbackEntry, FeedbackSignal, FileConversationMemory, FileMediaStore, LogEntry, SkillUsage, StorePath,
    TimelineStore, WorkingNote,
};
use rockbot::implement::turn::{Acceptance, RunAccepted, RunBody, RunKey, RunQuery, RunRecord, RunState, TurnJournal};
use rockbot::memory::FileMemory;
use rockbot::store::{
    ConversationLog, ConversationMemory, ConversationOptions, ConversationTurn, FileTurnJournal, JournalOptions,
    LongTermMemory, MediaStore, MemoryEntry, Rule, RulesStore, Skill, SkillStore, WorkingMemory,
};
use rockbot::trust::{Label, Trust};
use rockbot::{Digest, Principal, SessionId, Timestamp, TurnId};
use rockbot_core::testing::ManualClock;
use rockbot_memory::FileMemoryOptions;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::support::files::{copy, files};

/// End of the names of files that are locked while a store is open.
const LOCKS: Option<&str> = Some("lock");

const UPDATE: &str = "UPDATE_DATA_FOLDER";

/// 2026-01-01 00:00:00 UTC, when [`ManualClock`] starts.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

const LEASE: Duration = Duration::from_secs(60);

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/old_data_folder/files")
}

/// Every store of a data folder, in files.
struct FileStores {
    journal: FileTurnJournal,
    conversations: FileConversationMemory,
    media: FileMediaStore,
    memory: FileMemory,
}

impl FileStores {
    fn open(folder: &Path) -> Self {
        let clock = Arc::new(ManualClock::default());
        let journal = JournalOptions::default().with_clock(clock.clone());
        let conversations = ConversationOptions::default().with_clock(clock.clone());
        let memory = FileMemoryOptions::default().with_clock(clock);
        Self {
            journal: FileTurnJournal::open_with(folder.join("turns"), journal).unwrap(),
            conversations: FileConversationMemory::open_with(folder.join("conversations"), conversations).unwrap(),
            media: FileMediaStore::new(folder.join("media")),
            memory: FileMemory::open_with(folder, memory).unwrap(),
        }
    }
}

/// The stores that every backend has.
struct Stores<'a> {
    conversations: &'a dyn ConversationMemory,
    long_term: &'a dyn LongTermMemory,
    working: &'a dyn WorkingMemory,
    skills: &'a dyn SkillStore,
    skill_usage: &'a dyn TimelineStore<SkillUsage>,
    feedback: &'a dyn TimelineStore<FeedbackEntry>,
    rules: &'a dyn RulesStore,
    log: &'a dyn ConversationLog,
}

impl<'a> From<&'a FileStores> for Stores<'a> {
    fn from(stores: &'a FileStores) -> Self {
        Self {
            conversations: &stores.conversations,
            long_term: &*stores.memory.long_term,
            working: &*stores.memory.working,
            skills: &*stores.memory.skills,
            skill_usage: &*stores.memory.skill_usage,
            feedback: &*stores.memory.feedback,
            rules: &*stores.memory.rules,
            log: &*stores.memory.conversation_log,
        }
    }
}

#[cfg(feature = "sqlite")]
impl<'a> From<&'a rockbot::memory::SqliteMemory> for Stores<'a> {
    fn from(stores: &'a rockbot::memory::SqliteMemory) -> Self {
        Self {
            conversations: &stores.conversations,
            long_term: &stores.long_term,
            working: &stores.working,
            skills: &stores.skills,
            skill_usage: &stores.skill_usage,
            feedback: &stores.feedback,
            rules: &stores.rules,
            log: &stores.conversation_log,
        }
    }
}

#[cfg(feature = "sqlite")]
fn open_sqlite(folder: &Path) -> rockbot::memory::SqliteMemory {
    let options = rockbot_memory::SqliteMemoryOptions::default().with_clock(Arc::new(ManualClock::default()));
    rockbot::memory::SqliteMemory::open_with(folder.join("agent.db"), options).unwrap()
}

fn principals() -> [Principal; 2] {
    [Principal::default(), Principal::from("ann/é")]
}

fn session() -> SessionId {
    SessionId::from("team: room/1")
}

fn path(path: &str) -> StorePath {
    StorePath::new(path).unwrap()
}

fn turns() -> Vec<ConversationTurn> {
    vec![
        ConversationTurn::new(Role::User, "What is the capital of Norway?", NOW, "t1").with_label(Label::USER),
        ConversationTurn::new(Role::Assistant, "Oslo.\nIt is.", NOW, "t1"),
        ConversationTurn::new(Role::User, "And of \"Sweden\"?", NOW, "t2"),
    ]
}

fn memory_entry() -> MemoryEntry {
    MemoryEntry::new("m1", "Ann likes \"tea\".", NOW, Provenance::USER)
        .with_category(path("user/likes"))
        .with_tags(vec!["tea".to_owned()])
        .with_importance_score(0.75)
        .with_reinforcement_count(2)
        .with_archived_at(NOW)
}

fn skill() -> Skill {
    Skill::new(path("cooking/tea"), "Boil water.", NOW, Provenance::TOOL)
        .with_summary("Makes tea.")
        .with_see_also(vec![path("cooking")])
}

fn note() -> WorkingNote {
    WorkingNote::new(path("session/a/plan"), "1. Ask.", Provenance::HOST).with_tags(vec!["plan".to_owned()])
}

fn usage() -> SkillUsage {
    SkillUsage::new("u1", path("cooking/tea"), session(), NOW)
}

fn feedback() -> FeedbackEntry {
    FeedbackEntry::new("f1", session(), FeedbackSignal::Correction, "Not Bergen.", NOW).with_detail("{}")
}

fn rule() -> Rule {
    Rule::new("Answer in French.").unwrap()
}

fn log_entry() -> LogEntry {
    LogEntry::new(session(), Role::User, "Hello", NOW)
        .with_label(Label::untrusted("tool:mail"))
        .with_trust(Trust::User)
}

/// Writes one of everything for each principal.
async fn write(stores: &Stores<'_>) {
    for who in &principals() {
        // The first turn is in the document of the session, the second in its log.
        let mut turns = turns();
        let later = turns.split_off(2);
        stores.conversations.append(who, &session(), turns).await.unwrap();
        stores.conversations.flush().await.unwrap();
        stores.conversations.append(who, &session(), later).await.unwrap();
        stores.long_term.save(who, memory_entry()).await.unwrap();
        stores.skills.save(who, skill()).await.unwrap();
        stores.working.put(who, vec![note()]).await.unwrap();
        stores.skill_usage.append(who, usage()).await.unwrap();
        stores.feedback.append(who, feedback()).await.unwrap();
        stores.rules.add(who, rule()).await.unwrap();
        stores.rules.set_time_zone(who, "Europe/Oslo").await.unwrap();
        stores.log.append(who, vec![log_entry(), log_entry()]).await.unwrap();
        let batch = stores.log.read(who, "reader", 1).await.unwrap();
        stores.log.commit(who, "reader", batch.next).await.unwrap();
    }
}

/// Checks that `stores` have what [`write`] wrote.
async fn check(stores: &Stores<'_>) {
    for who in &principals() {
        assert_eq!(stores.conversations.recent(who, &session(), 9).await.unwrap(), turns());
        assert_eq!(stores.long_term.list(who).await.unwrap(), [Arc::new(memory_entry())]);
        assert_eq!(stores.skills.list(who).await.unwrap(), [Arc::new(skill())]);
        assert_eq!(
            stores.working.list(who, None).await.unwrap(),
            [Arc::new(note().stored_at(NOW))]
        );
        let long_ago = Timestamp::default();
        assert_eq!(
            stores.skill_usage.query_recent(who, long_ago, 9).await.unwrap(),
            [usage()]
        );
        assert_eq!(
            stores.feedback.query_recent(who, long_ago, 9).await.unwrap(),
            [feedback()]
        );
        assert_eq!(stores.rules.list(who).await.unwrap(), [rule()]);
        assert_eq!(
            stores.rules.time_zone(who).await.unwrap().as_deref(),
            Some("Europe/Oslo")
        );
        assert_eq!(stores.log.read(who, "reader", 9).await.unwrap().entries, [log_entry()]);
    }
}

fn run(name: &str) -> RunAccepted {
    let key = RunKey::new("ann/é".into(), session(), name).with_source("tests");
    RunAccepted::new(name, key, Digest::of([name]), NOW, json(r#"{"text":"hello"}"#))
}

fn record() -> RunRecord {
    RunRecord::new(NOW, json(r#"{"event":1}"#)).with_critical(true)
}

fn json(json: &str) -> RunBody {
    RawValue::from_string(json.to_owned()).unwrap().into()
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Writes a run that has ended and a run that has not.
async fn write_runs(journal: &dyn TurnJournal) {
    for name in ["aa", "bb"] {
        let Acceptance::New(claim) = journal.accept(&run(name), "host", LEASE).await.unwrap() else {
            panic!("{name} is new");
        };
        journal.append(&claim, &[record()]).await.unwrap();
        if name == "aa" {
            journal.finish(&claim, &json(r#"{"answer":"Oslo."}"#)).await.unwrap();
        }
    }
}

/// Checks that `journal` has what [`write_runs`] wrote.
async fn check_runs(journal: &dyn TurnJournal) {
    let unfinished = journal.unfinished(&RunQuery::all()).await.unwrap();
    assert_eq!(unfinished, [TurnId::from("bb")]);
    let stored = journal.read(&TurnId::from("bb")).await.unwrap().unwrap();
    assert_eq!(text(&stored.accepted), text(&run("bb")));
    assert_eq!(text(&stored.records), text(&[record()]));
    let ended = journal.read(&TurnId::from("aa")).await.unwrap().unwrap();
    let RunState::Finished(outcome) = ended.state else {
        panic!("the first run has ended: {:?}", ended.state);
    };
    assert_eq!(text(&outcome), r#"{"answer":"Oslo."}"#);
    let again = journal.accept(&run("aa"), "host", LEASE).await.unwrap();
    assert!(matches!(again, Acceptance::Known(RunState::Finished(_))));
}

/// Writes everything into `folder`.
async fn write_all(folder: &Path) {
    let stores = FileStores::open(folder);
    write(&Stores::from(&stores)).await;
    write_runs(&stores.journal).await;
    for who in &principals() {
        stores.media.put(who, "a picture".into()).await.unwrap();
    }
    stores.memory.flush().await.unwrap();
}

#[tokio::test]
async fn stores_write_the_same_files_as_before() {
    let folder = tempfile::tempdir().unwrap();
    write_all(folder.path()).await;
    if std::env::var_os(UPDATE).is_some() {
        update(folder.path()).await;
    }
    let without_caches = |folder: &Path| {
        let mut files = files(folder);
        files.retain(|name, _| !name.ends_with("lock") && !name.starts_with("agent.db"));
        files
    };
    assert_eq!(without_caches(folder.path()), without_caches(&fixture()));
}

/// Replaces the fixture by the files in `folder`, and its SQLite file by a new one.
async fn update(folder: &Path) {
    std::fs::remove_dir_all(fixture()).ok();
    #[cfg(feature = "sqlite")]
    write(&Stores::from(&open_sqlite(folder))).await;
    copy(folder, &fixture(), LOCKS);
}

#[tokio::test]
async fn an_earlier_data_folder_opens() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture(), folder.path(), LOCKS);
    let stores = FileStores::open(folder.path());
    check(&Stores::from(&stores)).await;
    check_runs(&stores.journal).await;
    let picture = Digest::of(["a picture"]);
    for who in &principals() {
        let found = stores.media.get(who, &picture).await.unwrap();
        assert_eq!(found.as_deref(), Some(&b"a picture"[..]));
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn an_earlier_sqlite_file_opens() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture(), folder.path(), LOCKS);
    check(&Stores::from(&open_sqlite(folder.path()))).await;
}
