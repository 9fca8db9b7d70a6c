//! All stores in one SQLite file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{Provenance, Role};
use rockbot_core::store::{
    ConversationLog, ConversationMemory, ConversationTurn, FeedbackEntry, FeedbackSignal, LogEntry, LongTermMemory,
    MemoryEntry, MemoryQuery, Rule, RulesStore, Skill, SkillStore, SkillUsage, StorePath, TimelineStore, WorkingMemory,
    WorkingNote,
};
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::{Clock, Principal, Timestamp};
use rockbot_host::Stores;
use rockbot_memory::sqlite::SqliteError;
use rockbot_memory::{
    ConversationLogOptions, FileLongTermMemory, FileMemory, Memory, SqliteMemory, SqliteMemoryOptions, copy,
};
use rockbot_store::file::FileConversationMemory;
use tempfile::TempDir;

use crate::support::files::files;
use crate::support::{host_of, kill, settle, transcript};

const ALL: usize = usize::MAX;

fn me() -> Principal {
    Principal::default()
}

fn file(folder: &Path) -> PathBuf {
    folder.join("agent.db")
}

/// By a clock that stands still.
fn open(folder: &Path) -> SqliteMemory {
    let options = SqliteMemoryOptions::default().with_clock(Arc::new(ManualClock::default()));
    SqliteMemory::open_with(file(folder), options).unwrap()
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, at(1000), Provenance::USER)
}

fn said(session: &str, content: &str) -> LogEntry {
    LogEntry::new(session, Role::User, content, at(1000))
}

fn turn(turn: &str) -> ConversationTurn {
    ConversationTurn::new(Role::User, format!("said in {turn}"), at(1000), turn)
}

fn skill(name: &str) -> Skill {
    Skill::new(path(name), "Open it.", at(1000), Provenance::MODEL)
}

fn used(id: &str, session: &str) -> SkillUsage {
    SkillUsage::new(id, path("web"), session, at(1000))
}

fn liked(id: &str, session: &str) -> FeedbackEntry {
    FeedbackEntry::new(id, session, FeedbackSignal::UserThumbsUp, "thanks", at(1000))
}

/// Leaves something under `id` in every store.
async fn fill(memory: &SqliteMemory, principal: &Principal, id: &str) {
    memory.long_term.save(principal, fact(id, id)).await.unwrap();
    memory.skills.save(principal, skill("web")).await.unwrap();
    memory.skill_usage.append(principal, used(id, id)).await.unwrap();
    memory.feedback.append(principal, liked(id, id)).await.unwrap();
    memory
        .rules
        .add(principal, Rule::new(&format!("say {id}")).unwrap())
        .await
        .unwrap();
    memory
        .conversation_log
        .append(principal, vec![said(id, id)])
        .await
        .unwrap();
    memory
        .conversations
        .append(principal, &id.into(), vec![turn(id)])
        .await
        .unwrap();
    let note = WorkingNote::new(path("shared/note"), id, Provenance::TOOL);
    memory.working.put(principal, vec![note]).await.unwrap();
}

/// Everything that is there, as text.
async fn contents(memory: &SqliteMemory, principal: &Principal) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |what: &str, all: &dyn std::fmt::Debug| found.push(format!("{what}: {all:?}"));
    add("memories", &memory.long_term.list(principal).await.unwrap());
    add("skills", &memory.skills.list(principal).await.unwrap());
    add(
        "uses",
        &memory.skill_usage.query_recent(principal, at(0), ALL).await.unwrap(),
    );
    add(
        "feedback",
        &memory.feedback.query_recent(principal, at(0), ALL).await.unwrap(),
    );
    add("rules", &memory.rules.list(principal).await.unwrap());
    add(
        "log",
        &memory.conversation_log.read(principal, "all", ALL).await.unwrap(),
    );
    for session in memory.conversations.sessions(principal).await.unwrap() {
        add("session", &session);
        add(
            "turns",
            &memory.conversations.recent(principal, &session, ALL).await.unwrap(),
        );
    }
    add("notes", &memory.working.list(principal, None).await.unwrap());
    found
}

#[tokio::test]
async fn everything_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = contents(&open(folder.path()), &me()).await;
    for round in ["one", "two", "three"] {
        let memory = open(folder.path());
        assert_eq!(contents(&memory, &me()).await, expected);
        fill(&memory, &me(), round).await;
        expected = contents(&memory, &me()).await;
        let batch = memory.conversation_log.read(&me(), "dream", 1).await.unwrap();
        memory
            .conversation_log
            .commit(&me(), "dream", batch.next)
            .await
            .unwrap();
    }
    let memory = open(folder.path());
    assert_eq!(contents(&memory, &me()).await, expected);
    assert_eq!(
        memory.conversation_log.read(&me(), "dream", 9).await.unwrap().entries,
        []
    );
}

/// Ids that a careless query would read as something else, or cut short.
#[tokio::test]
async fn hostile_ids_come_back_and_principals_stay_apart() {
    let ids = [
        "",
        "'",
        "a' OR '1'='1",
        "a\0b",
        "a\0c",
        "%",
        "_",
        "a",
        "A",
        "ä",
        "a\u{308}",
        "👍🏽",
        "\"; DROP TABLE memory; --",
    ];
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    let nothing = contents(&memory, &me()).await;
    for id in ids {
        fill(&memory, &id.into(), id).await;
    }
    for id in ids {
        let alone = tempfile::tempdir().unwrap();
        let alone = open(alone.path());
        fill(&alone, &id.into(), id).await;
        let expected = contents(&alone, &id.into()).await;
        assert_eq!(contents(&memory, &id.into()).await, expected, "what {id:?} has");
        for other in ids.iter().filter(|other| **other != id) {
            assert_eq!(memory.long_term.get(&id.into(), &(*other).into()).await.unwrap(), None);
        }
        assert_eq!(
            memory.long_term.get(&id.into(), &id.into()).await.unwrap(),
            Some(fact(id, id).into())
        );
    }
    assert_eq!(contents(&memory, &"nobody".into()).await, nothing);
}

#[tokio::test]
async fn many_keep_things_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(open(folder.path()));
    let tasks = (0..8).map(|task| {
        let memory = memory.clone();
        tokio::spawn(async move {
            for round in 0..25 {
                let id = format!("{task}-{round}");
                memory
                    .conversation_log
                    .append(&me(), vec![said("s", &id)])
                    .await
                    .unwrap();
                memory
                    .long_term
                    .remember(&me(), fact(&id, &format!("fact {round}")))
                    .await
                    .unwrap();
                memory.long_term.search(&me(), &MemoryQuery::new("fact")).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let entries = memory.long_term.list(&me()).await.unwrap();
    let counts: Vec<_> = entries.iter().map(|entry| entry.reinforcement_count).collect();
    assert_eq!(counts, [8; 25], "of several at once one adds");
    let found = memory
        .long_term
        .search(&me(), &MemoryQuery::new("fact").with_limit(ALL))
        .await
        .unwrap();
    assert_eq!(found.len(), 25);
    assert_eq!(
        memory
            .conversation_log
            .read(&me(), "all", ALL)
            .await
            .unwrap()
            .entries
            .len(),
        200
    );
}

#[tokio::test]
async fn finds_the_same_in_the_same_order_as_files_do() {
    let words = ["iron", "gate", "tea", "garden", "wood", "rust"];
    let fact = |at: usize| {
        let words: Vec<_> = (0..=at % 5)
            .map(|word| words[(at * 7 + word * at) % words.len()])
            .collect();
        fact(&format!("m{at:03}"), &words.join(" "))
    };
    let folder = tempfile::tempdir().unwrap();
    let files = FileLongTermMemory::open(folder.path().join("memory")).unwrap();
    let rows = open(folder.path()).long_term;
    // Half of them are there when the first search builds the index.
    for from in [0, 100] {
        for at in from..from + 100 {
            files.save(&me(), fact(at)).await.unwrap();
            rows.save(&me(), fact(at)).await.unwrap();
        }
        for text in ["iron", "iron gate", "tea garden rust", ""] {
            let query = MemoryQuery::new(text);
            assert_eq!(
                files.search(&me(), &query).await.unwrap(),
                rows.search(&me(), &query).await.unwrap(),
                "{text:?}"
            );
        }
    }
}

#[tokio::test]
async fn files_go_into_the_database_and_come_out_the_same() {
    let before = tempfile::tempdir().unwrap();
    let after = tempfile::tempdir().unwrap();
    let between = tempfile::tempdir().unwrap();
    let database = open(between.path());
    let conversations = |folder: &TempDir| FileConversationMemory::open(folder.path().join("conversations")).unwrap();
    let old = FileMemory::open(before.path()).unwrap();
    let old_conversations = conversations(&before);
    for at in 0..100 {
        let mut fact = fact(&format!("M{at}"), "likes tea");
        fact.category = Some(path(["user", "work/rust"][at % 2]));
        fact.archived_at = (at % 3 == 0).then(|| self::at(7_000));
        old.long_term.save(&me(), fact).await.unwrap();
    }
    old.skills.save(&me(), skill("mcp/email")).await.unwrap();
    for rule in ["Be brief.", "Answer in Norwegian."] {
        old.rules.add(&me(), Rule::new(rule).unwrap()).await.unwrap();
    }
    old.rules.set_time_zone(&me(), "Europe/Paris").await.unwrap();
    for session in ["a", "b"] {
        old_conversations
            .append(&me(), &session.into(), vec![turn("t1"), turn("t2")])
            .await
            .unwrap();
    }
    // Twice, as after a failure.
    for (new_rules, new_sessions) in [(2, 2), (0, 0)] {
        let memories = copy::copy_long_term(&me(), &*old.long_term, &database.long_term)
            .await
            .unwrap();
        let skills = copy::copy_skills(&me(), &*old.skills, &database.skills).await.unwrap();
        assert_eq!((memories, skills), (100, 1));
        let rules = copy::copy_rules(&me(), &*old.rules, &database.rules).await.unwrap();
        let sessions = copy::copy_conversations(&me(), &old_conversations, &database.conversations)
            .await
            .unwrap();
        assert_eq!((rules, sessions), (new_rules, new_sessions));
    }
    let new = FileMemory::open(after.path()).unwrap();
    let new_conversations = conversations(&after);
    copy::copy_long_term(&me(), &database.long_term, &*new.long_term)
        .await
        .unwrap();
    copy::copy_skills(&me(), &database.skills, &*new.skills).await.unwrap();
    copy::copy_rules(&me(), &database.rules, &*new.rules).await.unwrap();
    copy::copy_conversations(&me(), &database.conversations, &new_conversations)
        .await
        .unwrap();
    for conversations in [old_conversations, new_conversations] {
        conversations.flush().await.unwrap();
    }
    assert_eq!(files(after.path()), files(before.path()));
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let ask = async |text: &str| {
        let model = ScriptedModel::new().says("Noted.");
        let memory = open(folder.path());
        let host = host_of(&model)
            .stores(Stores::new().with_conversation_memory(memory.conversations))
            .build()
            .unwrap();
        host.agent().ask("s", text).await.unwrap();
        let shown = transcript(&model.requests()[0]);
        host.shutdown(Duration::from_secs(5)).await;
        shown
    };
    ask("I like tea.").await;
    let expected = ["user: I like tea.", "assistant: Noted.", "user: What do I like?"];
    assert_eq!(ask("What do I like?").await[1..], expected);
}

#[tokio::test]
async fn the_tools_of_a_model_write_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let rule = serde_json::json!({"rule": "Be brief."});
    let model = ScriptedModel::new().calls("change_rules", rule).says("Noted.");
    let stores = open(folder.path());
    let memory = Memory::default()
        .long_term(stores.long_term)
        .working(stores.working)
        .skills(stores.skills, stores.skill_usage)
        .rules(stores.rules)
        .feedback(stores.feedback);
    let host = host_of(&model)
        .stores(Stores::new().with_conversation_memory(stores.conversations))
        .add(memory)
        .build()
        .unwrap();
    host.agent().ask("s", "Be brief from now on.").await.unwrap();
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, model, stores.conversation_log));
    // Tasks that were told to end let go of the file.
    settle().await;
    let rules = open(folder.path()).rules.list(&me()).await.unwrap();
    assert_eq!(rules, [Rule::new("Be brief.").unwrap()]);
}

#[test]
fn it_outlives_the_runtime_in_which_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let memory = runtime().block_on(async {
        let memory = open(folder.path());
        memory.long_term.save(&me(), fact("a", "likes tea")).await.unwrap();
        memory
    });
    runtime().block_on(async {
        memory.long_term.save(&me(), fact("b", "likes tea")).await.unwrap();
        assert_eq!(memory.long_term.list(&me()).await.unwrap().len(), 2);
    });
}

#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn second() {
    let refused = SqliteMemory::open(file(Path::new(&std::env::var("FOLDER").unwrap()))).unwrap_err();
    println!("\nrefused: {refused}");
}

#[tokio::test]
async fn a_second_process_is_refused_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["sqlite::second", "--exact", "--ignored", "--nocapture"])
        .env("FOLDER", folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "refused: the database `{}` cannot be opened: it is in use: end the process that has it open, or close what has it open in this one, or use another file",
        file(folder.path()).display()
    );
    assert_eq!(
        output.lines().find(|line| line.starts_with("refused")),
        Some(&*expected)
    );
    drop(memory);
    open(folder.path());
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    for at in 0..50 {
        memory
            .long_term
            .save(&me(), fact(&format!("m{at}"), &"tea ".repeat(500)))
            .await
            .unwrap();
    }
    drop(memory);
    let whole = std::fs::read(file(folder.path())).unwrap();
    let mut overwritten = whole.clone();
    overwritten[whole.len() / 2..whole.len() / 2 + 20_000].fill(0x5a);
    let mut other = whole.clone();
    other[..16].fill(b'x');
    for damaged in [
        b"not a database, but long enough to be read as one".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        overwritten,
        other,
    ] {
        std::fs::write(file(folder.path()), &damaged).unwrap();
        let error = SqliteMemory::open(file(folder.path())).unwrap_err();
        assert!(
            matches!(
                error.cause().and_then(|cause| cause.downcast_ref()),
                Some(SqliteError::Damaged(_))
            ),
            "{error}"
        );
        assert!(error.to_string().contains("put a copy in its place"), "{error}");
        assert_eq!(
            std::fs::read(file(folder.path())).unwrap(),
            damaged,
            "nothing of it is lost"
        );
    }
    std::fs::write(file(folder.path()), &whole).unwrap();
    assert_eq!(open(folder.path()).long_term.list(&me()).await.unwrap().len(), 50);
    std::fs::write(file(folder.path()), b"").unwrap();
    assert_eq!(open(folder.path()).long_term.list(&me()).await.unwrap(), []);
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed_and_other_users_cannot_read_it() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let elsewhere = tempfile::tempdir().unwrap();
    drop(open(elsewhere.path()));
    for name in ["agent.db", "agent.db.lock"] {
        let folder = tempfile::tempdir().unwrap();
        symlink(elsewhere.path().join(name), folder.path().join(name)).unwrap();
        SqliteMemory::open(file(folder.path())).unwrap_err();
    }
    let folder = tempfile::tempdir().unwrap();
    // A folder may be reached by one.
    symlink(elsewhere.path(), folder.path().join("linked")).unwrap();
    let memory = open(&folder.path().join("linked"));
    memory.long_term.save(&me(), fact("m", "likes tea")).await.unwrap();
    for name in ["agent.db", "agent.db-wal", "agent.db.lock"] {
        let mode = std::fs::metadata(elsewhere.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_full_log_forgets_its_older_half() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        SqliteMemoryOptions::default().with_conversation_log(ConversationLogOptions::default().with_max_bytes(4_000));
    let log = SqliteMemory::open_with(file(folder.path()), options)
        .unwrap()
        .conversation_log;
    let read = async |reader| log.read(&me(), reader, ALL).await.unwrap();
    let mut seen = Vec::new();
    for at in 0..100 {
        log.append(&me(), vec![said("s", &format!("{at:03}"))]).await.unwrap();
        let batch = read("dream").await;
        seen.extend(batch.entries.iter().map(|entry| entry.content.clone()));
        log.commit(&me(), "dream", batch.next).await.unwrap();
        let kept = read("late").await.entries;
        let bytes: usize = kept.iter().map(|entry| serde_json::to_vec(entry).unwrap().len()).sum();
        assert!(
            bytes <= 4_000 && kept.last() == Some(&said("s", &format!("{at:03}"))),
            "{bytes} bytes"
        );
        assert!(
            at < 20 || kept.len() >= 20,
            "half of the log is left, not {}",
            kept.len()
        );
    }
    assert_eq!(seen, (0..100).map(|at| format!("{at:03}")).collect::<Vec<_>>());
    let refused = log
        .append(&me(), vec![said("s", &"x".repeat(2_000))])
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("and the most is 1000: shorten it"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_clock_that_is_set_back_brings_no_note_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let options = SqliteMemoryOptions::default().with_clock(Arc::new(clock.clone()));
    let working = SqliteMemory::open_with(file(folder.path()), options).unwrap().working;
    let began = clock.now();
    let key = path("session/a/x");
    working
        .put(&me(), vec![WorkingNote::new(key.clone(), "x", Provenance::TOOL)])
        .await
        .unwrap();
    clock.advance(Duration::from_secs(3600));
    assert_eq!(working.get(&me(), &key).await.unwrap(), None);
    clock.set(began);
    assert_eq!(working.get(&me(), &key).await.unwrap(), None);
    assert_eq!(working.list(&me(), None).await.unwrap(), []);
}

/// Writes to several stores at once until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let memory = open(&folder);
    kill::ready();
    let facts = async {
        for at in 0.. {
            let id = format!("{round}-{at}");
            memory.long_term.remember(&me(), fact(&id, &id)).await.unwrap();
            kill::acknowledge(&format!("fact {id}"));
        }
    };
    let log = async {
        for at in 0.. {
            let id = format!("{round}-{at}");
            memory
                .conversation_log
                .append(&me(), vec![said("s", &id)])
                .await
                .unwrap();
            kill::acknowledge(&format!("said {id}"));
        }
    };
    let turns = async {
        for at in 0.. {
            let session = format!("{round}-{at}");
            memory
                .conversations
                .append(&me(), &session.as_str().into(), vec![turn("t1"), turn("t2")])
                .await
                .unwrap();
            kill::acknowledge(&format!("turn {session}"));
        }
    };
    tokio::join!(facts, log, turns);
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    let mut total = 0;
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = BTreeSet::new();
        for round in first..first + 20 {
            acknowledged.extend(kill::kill("sqlite::child", folder.path(), round));
        }
        let memory = open(folder.path());
        let facts = memory.long_term.list(&me()).await.unwrap();
        let mut found: BTreeSet<_> = facts.iter().map(|fact| format!("fact {}", fact.id)).collect();
        let log = memory.conversation_log.read(&me(), "all", ALL).await.unwrap().entries;
        found.extend(log.iter().map(|entry| format!("said {}", entry.content)));
        for session in memory.conversations.sessions(&me()).await.unwrap() {
            assert_eq!(
                memory.conversations.recent(&me(), &session, ALL).await.unwrap(),
                [turn("t1"), turn("t2")]
            );
            found.insert(format!("turn {session}"));
        }
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        total += acknowledged.len();
    }
    assert!(total > 100, "{total} writes in 200 processes");
}
