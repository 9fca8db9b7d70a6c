//! Runs the conformance suite of each store, and opens files that another program wrote or damaged.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rockbot_core::chat::Provenance;
use rockbot_core::store::{
    ConversationLog, LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, Rule, RulesStore, Skill, SkillStore,
    StoreError, StorePath, TimelineStore, WorkingLimits,
};
use rockbot_core::testing::conformance;
use rockbot_core::{Clock, Principal, Timestamp};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::storage::Database;
use super::{SqliteError, SqliteMemory, SqliteMemoryOptions};

fn me() -> Principal {
    Principal::default()
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("agent.db")
}

fn open(folder: &TempDir) -> SqliteMemory {
    SqliteMemory::open(file(folder)).unwrap()
}

/// Returns the stores, and the database below them.
fn open_file(folder: &TempDir) -> (SqliteMemory, Arc<Database>) {
    let database = Arc::new(Database::open(&file(folder)).unwrap());
    (SqliteMemory::over(&database, SqliteMemoryOptions::default()), database)
}

/// Changes the file as another program might.
fn run(folder: &TempDir, sql: &str) {
    Connection::open(file(folder)).unwrap().execute_batch(sql).unwrap();
}

fn refused(folder: &TempDir) -> SqliteError {
    reason(&SqliteMemory::open(file(folder)).unwrap_err())
}

fn reason(error: &StoreError) -> SqliteError {
    error.cause().and_then(|cause| cause.downcast_ref()).cloned().unwrap()
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, Timestamp::from_millis(1000), Provenance::USER)
}

/// Makes stores in folders that are removed at the end.
#[derive(Default)]
struct Folders(Mutex<Vec<TempDir>>);

impl Folders {
    fn stores(&self, options: SqliteMemoryOptions) -> SqliteMemory {
        let folder = tempfile::tempdir().unwrap();
        let stores = SqliteMemory::open_with(file(&folder), options).unwrap();
        self.0.lock().unwrap().push(folder);
        stores
    }

    fn new_stores(&self) -> SqliteMemory {
        self.stores(SqliteMemoryOptions::default())
    }
}

#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory() {
    let folders = Folders::default();
    conformance::long_term_memory(async || folders.new_stores().long_term).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_store() {
    let folders = Folders::default();
    conformance::skill_store(async || folders.new_stores().skills).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_usage_store() {
    let folders = Folders::default();
    conformance::skill_usage_store(async || folders.new_stores().skill_usage).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_feedback_store() {
    let folders = Folders::default();
    conformance::feedback_store(async || folders.new_stores().feedback).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_rules_store() {
    let folders = Folders::default();
    conformance::rules_store(async || folders.new_stores().rules).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_log() {
    let folders = Folders::default();
    conformance::conversation_log(async || folders.new_stores().conversation_log).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_memory() {
    let folders = Folders::default();
    conformance::conversation_memory(async || folders.new_stores().conversations).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_working_memory() {
    let folders = Folders::default();
    let make = async |clock: Arc<dyn Clock>, entries| {
        let working_limits = WorkingLimits::default().with_entries(entries);
        let options = SqliteMemoryOptions {
            clock: Some(clock),
            working_limits,
            ..SqliteMemoryOptions::default()
        };
        folders.stores(options).working
    };
    conformance::working_memory(make).await;
}

#[tokio::test]
async fn the_file_waits_for_the_disk_and_names_its_program_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let (_, database) = open_file(&folder);
    let pragmas = |connection: &Connection| {
        let number = |name| {
            connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap()
        };
        let mode: String = connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        Ok((
            mode,
            number("synchronous"),
            number("application_id"),
            number("user_version"),
        ))
    };
    let found = database.write(pragmas).await.unwrap();
    assert_eq!(found, ("wal".to_owned(), 2, 0x726b_6274, 2));
}

#[tokio::test]
async fn an_older_file_gets_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let rule = Rule::new("Be brief.").unwrap();
    open(&folder).rules.add(&me(), rule.clone()).await.unwrap();
    run(&folder, "DROP TABLE time_zone; PRAGMA user_version = 1");
    let rules = open(&folder).rules;
    rules.set_time_zone(&me(), "Europe/Paris").await.unwrap();
    assert_eq!(rules.list(&me()).await.unwrap(), [rule]);
    drop(rules);
    let zone = open(&folder).rules.time_zone(&me()).await.unwrap();
    assert_eq!(zone.as_deref(), Some("Europe/Paris"));
}

#[tokio::test]
async fn members_that_we_do_not_know_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    open(&folder)
        .long_term
        .save(&me(), fact("m", "likes tea"))
        .await
        .unwrap();
    let theirs = r#""verify": {"kind": "capability"}, "$type": "System.Diagnostics.Process", "lc": 1}"#;
    run(
        &folder,
        &format!("UPDATE memory SET json = substr(json, 1, length(json) - 1) || ',' || '{theirs}'"),
    );
    let memory = open(&folder).long_term;
    assert_eq!(
        *memory.get(&me(), &"m".into()).await.unwrap().unwrap(),
        fact("m", "likes tea")
    );
    memory
        .update(&me(), &"m".into(), |entry| entry.content.push('!'))
        .await
        .unwrap();
    drop(memory);
    let connection = Connection::open(file(&folder)).unwrap();
    let json: String = connection
        .query_row("SELECT json FROM memory", (), |row| row.get(0))
        .unwrap();
    let document: Value = serde_json::from_str(&json).unwrap();
    let mut expected = serde_json::to_value(fact("m", "likes tea!")).unwrap();
    expected["verify"] = json!({"kind": "capability"});
    (expected["$type"], expected["lc"]) = (json!("System.Diagnostics.Process"), json!(1));
    assert_eq!(document, expected);
}

#[tokio::test]
async fn a_newer_file_and_one_of_another_program_are_refused_and_left_as_they_are() {
    for (sql, expected) in [
        (
            "PRAGMA user_version = 3",
            "it has the format 3, and this program knows those up to 2: use a newer version of the program",
        ),
        (
            "PRAGMA application_id = 7",
            "it is a database of another program: use another file",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        drop(open(&folder));
        run(&folder, sql);
        let before = std::fs::read(file(&folder)).unwrap();
        assert_eq!(refused(&folder).to_string(), expected);
        assert_eq!(std::fs::read(file(&folder)).unwrap(), before);
    }
    let folder = tempfile::tempdir().unwrap();
    run(&folder, "CREATE TABLE theirs (x)");
    assert!(matches!(refused(&folder), SqliteError::Foreign));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out_and_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open(&folder);
    for id in ["a", "b"] {
        stores.long_term.save(&me(), fact(id, "likes tea")).await.unwrap();
    }
    drop(stores);
    run(&folder, r#"UPDATE memory SET json = '{"content": 7}' WHERE id = 'a'"#);
    let memory = open(&folder).long_term;
    assert_eq!(ids(&memory).await, ["b"]);
    assert_eq!(memory.search(&me(), &MemoryQuery::new("tea")).await.unwrap().len(), 1);
    let is_row = |error: StoreError| matches!(reason(&error), SqliteError::Row { what: "memory", id, .. } if id == "a");
    assert!(is_row(memory.get(&me(), &"a".into()).await.unwrap_err()));
    assert!(is_row(memory.save(&me(), fact("a", "new")).await.unwrap_err()));
    memory.delete(&me(), &"a".into()).await.unwrap();
    memory.save(&me(), fact("a", "new")).await.unwrap();
    assert_eq!(ids(&memory).await, ["a", "b"]);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_never_purged() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(&folder);
    let mut entry = fact("m", "likes tea");
    (entry.created_at, entry.archived_at) = (Timestamp::default(), Some(Timestamp::from_millis(1)));
    memory.long_term.save(&me(), entry).await.unwrap();
    drop(memory);
    run(
        &folder,
        "INSERT INTO memory (principal, id, json) VALUES ('local', 'x', '{\"archivedAt\":');
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        INSERT INTO feedback (principal, at, json) SELECT 'local', i, iif(i % 1000 = 0, '{', '{\"id\":\"f\",\"sessionId\":\"s\",
            \"signalType\":0,\"summary\":\"\",\"timestamp\":\"2026-01-01T00:00:00Z\"}') FROM n",
    );
    let memory = open(&folder);
    let before = Timestamp::from_millis(2400);
    assert_eq!(memory.long_term.purge(before).await.unwrap(), 1);
    assert_eq!(memory.feedback.purge(before, usize::MAX).await.unwrap(), 2397);
    assert_eq!(memory.feedback.purge(before, 50).await.unwrap(), 51);
    drop(memory);
    let connection = Connection::open(file(&folder)).unwrap();
    let count = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM memory WHERE id = 'x'"), 1);
    assert_eq!(count("SELECT count(*) FROM feedback"), 52);
}

#[tokio::test]
async fn a_write_that_fails_takes_back_its_own_rows_only() {
    let folder = tempfile::tempdir().unwrap();
    let (stores, database) = open_file(&folder);
    let memory = &stores.long_term;
    let log = &stores.conversation_log;
    let failing = database.write(|connection| {
        connection.execute(
            "INSERT INTO rule (principal, folded, text) VALUES ('local', 'x', 'x')",
            (),
        )?;
        connection.execute("no sql", ())?;
        Ok(())
    });
    let me = me();
    let (held, release) = hold(&database);
    let (_, failed, saved, appended, ()) = tokio::join!(
        held,
        failing,
        memory.save(&me, fact("m", "likes tea")),
        log.append(&me, Vec::new()),
        release,
    );
    assert!(matches!(reason(&failed.unwrap_err()), SqliteError::Sqlite { .. }));
    saved.unwrap();
    appended.unwrap();
    assert_eq!(ids(memory).await, ["m"]);
    assert_eq!(stores.rules.list(&me).await.unwrap(), []);
}

/// A full disk fails the whole transaction: every write that shared it gets the error.
#[tokio::test]
async fn nothing_is_acknowledged_that_a_full_disk_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (stores, database) = open_file(&folder);
    let pages: i64 = database
        .write(|connection| {
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection
                .pragma_update_and_check(None, "max_page_count", pages + 4, |row| row.get(0))
                .map_err(Into::into)
        })
        .await
        .unwrap();
    let small = fact("small", "likes tea");
    let large = fact("large", &"tea ".repeat(10_000));
    let me = me();
    let memory = stores.long_term;
    let (held, release) = hold(&database);
    let (_, first, second, third, ()) = tokio::join!(
        held,
        memory.save(&me, small.clone()),
        memory.save(&me, large),
        memory.save(&me, fact("last", "likes coffee")),
        release,
    );
    second.unwrap_err();
    let acknowledged = [(first, "small"), (third, "last")]
        .into_iter()
        .filter(|(saved, _)| saved.is_ok());
    let mut acknowledged: Vec<_> = acknowledged.map(|(_, id)| id.to_owned()).collect();
    acknowledged.sort();
    assert_eq!(ids(&memory).await, acknowledged, "of {pages} pages");
    memory.save(&me, small).await.unwrap();
    assert!(ids(&memory).await.contains(&"small".to_owned()));
}

/// A write that waits until others have been asked for, which then share one commit.
fn hold(database: &Arc<Database>) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
    let (go, wait) = std::sync::mpsc::channel();
    let database = database.clone();
    let held = async move {
        let waiting = database.write(move |_| {
            wait.recv().unwrap();
            Ok(())
        });
        // It shares the transaction of those behind it when they are faster than the thread.
        drop(waiting.await);
    };
    (held, async move { go.send(()).unwrap() })
}

async fn ids(memory: &dyn LongTermMemory) -> Vec<String> {
    let entries = memory.list(&me()).await.unwrap();
    entries.iter().map(|entry| entry.id.to_string()).collect()
}

#[tokio::test]
async fn a_skill_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let skill = Skill::new(
        StorePath::new("web").unwrap(),
        "x".repeat(9 << 20),
        Timestamp::default(),
        Provenance::MODEL,
    );
    let refused = open(&folder).skills.save(&me(), skill).await.unwrap_err();
    assert!(matches!(
        reason(&refused),
        SqliteError::TooLarge {
            what: "skill",
            limit: 8_388_608,
            ..
        }
    ));
}

#[tokio::test]
async fn what_lies_in_the_folder_is_one_file_and_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open(&folder);
    stores
        .feedback
        .query_recent(&me(), Timestamp::default(), 1)
        .await
        .unwrap();
    stores.long_term.save(&me(), fact("m", "likes tea")).await.unwrap();
    assert_eq!(
        names(folder.path()),
        ["agent.db", "agent.db-shm", "agent.db-wal", "agent.db.lock"]
    );
    drop(stores);
    assert_eq!(names(folder.path()), ["agent.db", "agent.db.lock"]);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
