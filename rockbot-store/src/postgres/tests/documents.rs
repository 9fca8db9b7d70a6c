//! Long-term memory, skills and shared documents that several processes write.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{
    LongTermMemory, MemoryEntry, MemoryQuery, Remembered, SharedDocuments, Skill, SkillStore, StoreErrorKind, StorePath,
};
use rockbot_core::testing::ManualClock;
use rockbot_core::{Principal, Timestamp};
use tokio_postgres::NoTls;

use super::with_server;
use crate::postgres::{PostgresLongTermMemory, PostgresOptions};

fn me() -> Principal {
    Principal::default()
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, Timestamp::default(), Provenance::USER)
}

async fn found(memory: &PostgresLongTermMemory, words: &str) -> Vec<String> {
    let found = memory.search(&me(), &MemoryQuery::new(words)).await.unwrap();
    let mut ids: Vec<_> = found.iter().map(|hit| hit.item.id.to_string()).collect();
    ids.sort();
    ids
}

/// A row as another program writes it.
fn row(id: &str, content: &str) -> String {
    let json = serde_json::to_string(&fact(id, content)).unwrap();
    format!("INSERT INTO memory (principal, id, json) VALUES ('local', '{id}', '{json}')")
}

#[tokio::test]
async fn a_search_finds_what_every_process_has_written() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await;
        let (one, two) = (open().await, open().await);
        one.long_term.save(&me(), fact("a", "likes tea")).await.unwrap();
        assert_eq!(found(&two.long_term, "tea").await, ["a"]);
        one.long_term.save(&me(), fact("b", "likes green tea")).await.unwrap();
        two.long_term.save(&me(), fact("c", "drinks tea")).await.unwrap();
        for memory in [&one.long_term, &two.long_term] {
            assert_eq!(found(memory, "tea").await, ["a", "b", "c"]);
        }
        one.long_term.save(&me(), fact("b", "likes coffee")).await.unwrap();
        two.long_term.delete(&me(), &"a".into()).await.unwrap();
        for memory in [&one.long_term, &two.long_term] {
            assert_eq!(found(memory, "tea").await, ["c"]);
            assert_eq!(found(memory, "coffee").await, ["b"]);
        }
        // The same id anew, after its deletion was seen.
        one.long_term.save(&me(), fact("a", "hates tea")).await.unwrap();
        assert_eq!(found(&two.long_term, "tea").await, ["a", "c"]);

        let skill = |words: &str| {
            let name = StorePath::new("brew").unwrap();
            Skill::new(name, words.to_owned(), Timestamp::default(), Provenance::MODEL)
        };
        let brew = async |words: &str| two.skills.search(&me(), words, 9).await.unwrap().len();
        one.skills.save(&me(), skill("boil water")).await.unwrap();
        assert_eq!(brew("boil").await, 1);
        one.skills
            .delete(&me(), &StorePath::new("brew").unwrap())
            .await
            .unwrap();
        assert_eq!(brew("boil").await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_transaction_that_commits_late_is_not_skipped() {
    with_server(async |server| {
        let schema = server.new_schema();
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        assert_eq!(found(&memory, "tea").await, [""; 0]);
        let (client, connection) = tokio_postgres::connect(&server.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let begin = format!("BEGIN; SET search_path = {schema}; {}", row("late", "likes tea"));
        client.batch_execute(&begin).await.unwrap();
        for id in ["a", "b"] {
            memory.save(&me(), fact(id, "drinks tea")).await.unwrap();
        }
        assert_eq!(found(&memory, "tea").await, ["a", "b"]);
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(found(&memory, "tea").await, ["a", "b", "late"]);
    })
    .await;
}

#[tokio::test]
async fn the_same_fact_from_many_processes_at_once_is_one_memory() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.long_term;
        let processes = [open().await, open().await, open().await];
        let remember = async |n: usize| {
            let entry = fact(&n.to_string(), "Likes tea.");
            processes[n % 3].remember(&me(), entry).await.unwrap()
        };
        let remembered = join_all((0..12).map(remember)).await;
        let is_added = |remembered: &&Remembered| matches!(remembered, Remembered::Added(_));
        assert_eq!(remembered.iter().filter(is_added).count(), 1);
        let all = processes[0].list(&me()).await.unwrap();
        assert_eq!((all.len(), all[0].reinforcement_count), (1, 12));
    })
    .await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out_and_never_overwritten() {
    with_server(async |server| {
        let schema = server.new_schema();
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        memory.save(&me(), fact("a", "likes tea")).await.unwrap();
        let damage = format!(
            "SET search_path = {schema}; UPDATE memory SET json = '{{', changed = DEFAULT WHERE id = 'a'; {}",
            row("b", "drinks tea").replace("\"tags\"", "\"mood\":\"good\",\"tags\"")
        );
        assert_eq!(found(&memory, "tea").await, ["a"]);
        server.sql(&damage).await;
        assert_eq!(found(&memory, "tea").await, ["b"]);
        let refused = memory.save(&me(), fact("a", "likes tea")).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Damaged);
        assert_eq!(memory.delete(&me(), &"a".into()).await.unwrap(), None);
        memory.save(&me(), fact("a", "likes tea")).await.unwrap();

        memory.save(&me(), fact("b", "drinks green tea")).await.unwrap();
        let check = format!(
            "DO $$ BEGIN ASSERT (SELECT json::json->>'mood' FROM {schema}.memory WHERE id = 'b') = 'good'; END $$"
        );
        server.sql(&check).await;
    })
    .await;
}

#[tokio::test]
async fn a_long_list_is_read_in_pages() {
    with_server(async |server| {
        let schema = server.new_schema();
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        let json = serde_json::to_string(&fact("ID", "likes tea")).unwrap();
        let many = format!(
            "INSERT INTO {schema}.memory (principal, id, json)
                SELECT 'local', n::text, replace('{json}', 'ID', n::text) FROM generate_series(1, 20001) AS n"
        );
        server.sql(&many).await;
        assert_eq!(memory.list(&me()).await.unwrap().len(), 20_001);
        memory.delete(&me(), &"7".into()).await.unwrap();
        assert_eq!(memory.list(&me()).await.unwrap().len(), 20_000);
    })
    .await;
}

#[tokio::test]
async fn a_lock_ends_after_ten_seconds_and_then_replaces_nothing() {
    with_server(async |server| {
        let clock = ManualClock::default();
        let options = PostgresOptions::default().with_clock(Arc::new(clock.clone()));
        let documents = server.stores_with(options).await.shared_documents;
        let dead = documents.lock("tasks").await.unwrap();
        clock.advance(Duration::from_secs(10));
        let locked = documents.lock("tasks").await.unwrap();
        let late = documents.replace(dead.clone(), "[1]".to_owned()).await.unwrap_err();
        assert_eq!(late.kind(), StoreErrorKind::Conflict);
        // The release of a lock that has ended frees nothing.
        documents.release(dead).await;
        assert_eq!(documents.replace(locked, "[2]".to_owned()).await.unwrap(), 1);
        assert_eq!(documents.lock("tasks").await.unwrap().json.as_deref(), Some("[2]"));
    })
    .await;
}

#[tokio::test]
async fn rows_of_another_server_are_read_once() {
    with_server(async |server| {
        let schema = server.new_schema();
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        memory.save(&me(), fact("a", "likes tea")).await.unwrap();
        server
            .sql(&format!("UPDATE {schema}.memory SET changed = 9000000000000000"))
            .await;
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        assert_eq!(found(&memory, "tea").await, ["a"]);
        let check = format!("DO $$ BEGIN ASSERT (SELECT max(changed) < 9000000000000000 FROM {schema}.memory); END $$");
        server.sql(&check).await;
    })
    .await;
}

#[tokio::test]
async fn a_search_that_is_given_up_leaves_nothing_half_read() {
    with_server(async |server| {
        let schema = server.new_schema();
        let memory = server.open(&schema, PostgresOptions::default()).await.long_term;
        for round in 0..20 {
            memory.save(&me(), fact(&round.to_string(), "likes tea")).await.unwrap();
            let query = MemoryQuery::new("tea");
            let given_up = Duration::from_micros(50 * round);
            let _ = tokio::time::timeout(given_up, memory.search(&me(), &query)).await;
        }
        let query = MemoryQuery::new("tea").with_limit(99);
        assert_eq!(memory.search(&me(), &query).await.unwrap().len(), 20);
    })
    .await;
}
