//! The rate of appends, against a hand-written insert with the same durability, and the times of searches in
//! many memories.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};
use rockbot_core::turn::{Acceptance, Claim, RunAccepted, RunBody, RunKey, RunRecord, TurnJournal};
use rockbot_core::{Digest, Principal, Timestamp};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::{TestServer, with_server};
use crate::postgres::{PostgresLongTermMemory, PostgresOptions, PostgresTurnJournal};

/// Appends of each writer in one round, and rounds.
const APPENDS: usize = 300;
const ROUNDS: usize = 25;

fn record() -> RunRecord {
    RunRecord::new(Timestamp::default(), RunBody::new(Arc::new("x".repeat(600))))
}

async fn accept(journal: &PostgresTurnJournal, name: &str) -> Claim {
    let key = RunKey::new("local".into(), "session", name);
    let run = RunAccepted::new(
        name,
        key,
        Digest::of([name]),
        Timestamp::default(),
        RunBody::new(Arc::new(1)),
    );
    match journal.accept(&run, "owner", Duration::from_secs(60)).await.unwrap() {
        Acceptance::New(claim) => claim,
        known => panic!("the turn is new, got {known:?}"),
    }
}

/// Returns the seconds that `writers` connections take for their inserts.
async fn inserts(server: &TestServer, schema: &str, writers: usize) -> f64 {
    let connect = async |_| {
        let (client, connection) = tokio_postgres::connect(&server.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = format!("INSERT INTO {schema}.floor (turn, json) VALUES ($1, $2)");
        let insert = client.prepare(&sql).await.unwrap();
        (client, insert)
    };
    let clients = join_all((0..writers).map(connect)).await;
    let begun = Instant::now();
    let writers = clients.into_iter().map(|(client, insert)| async move {
        for _ in 0..APPENDS {
            let json = serde_json::to_string(&[record()]).unwrap();
            client.execute(&insert, &[&"turn", &json]).await.unwrap();
        }
    });
    writers.collect::<JoinSet<_>>().join_all().await;
    begun.elapsed().as_secs_f64()
}

/// Returns the seconds that `writers` turns take for their appends.
async fn appends(journal: &Arc<PostgresTurnJournal>, round: usize, writers: usize) -> f64 {
    let accept = async |writer: usize| accept(journal, &format!("{round} {writers} {writer}")).await;
    let claims = join_all((0..writers).map(accept)).await;
    let begun = Instant::now();
    let writers = claims.into_iter().map(|claim| {
        let journal = journal.clone();
        async move {
            for _ in 0..APPENDS {
                journal.append(&claim, &[record()]).await.unwrap();
            }
        }
    });
    writers.collect::<JoinSet<_>>().join_all().await;
    begun.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "prints figures")]
async fn appends_a_second() {
    with_server(async |server| {
        let schema = server.new_schema();
        let journal = server.open(&schema, PostgresOptions::default()).await.journal;
        server.sql(&format!("CREATE TABLE {schema}.floor (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, turn text, json text)")).await;
        for writers in [1, 4] {
            let (mut floor, mut ours, mut ratios) = (0.0, 0.0, Vec::new());
            for round in 0..=ROUNDS {
                let took = (inserts(server, &schema, writers).await, appends(&journal, round, writers).await);
                // The first round fills caches.
                if round > 0 {
                    (floor, ours) = (floor + took.0, ours + took.1);
                    ratios.push(took.0 / took.1);
                }
            }
            ratios.sort_by(f64::total_cmp);
            let rate = |seconds: f64| (writers * ROUNDS * APPENDS) as f64 / seconds;
            println!(
                "{writers} writers: {:.0} appends a second, {:.0} inserts: {:.2} of the rate (median)",
                rate(ours), rate(floor), ratios[ROUNDS / 2]
            );
        }
    })
    .await;
}

/// A hundred thousand memories of eight words from a thousand.
const MANY: &str = "INSERT INTO memory (principal, id, wording, json)
    SELECT 'local', n::text, n::text, json_build_object('id', n::text, 'content', (
            SELECT string_agg('word' || (n::bigint * k * 7919 % 1000), ' ') FROM generate_series(1, 8) AS k
        ), 'createdAt', '2026-01-01T00:00:00Z') FROM generate_series(1, 100000) AS n";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "prints figures")]
async fn searches_in_a_hundred_thousand_memories() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.long_term;
        let (memory, other) = (open().await, open().await);
        server.sql(&format!("SET search_path = {schema}; {MANY}")).await;
        let me = Principal::default();
        let timed = async |memory: &PostgresLongTermMemory| {
            let begun = Instant::now();
            let found = memory
                .search(&me, &MemoryQuery::new("word7 word13 word500"))
                .await
                .unwrap();
            assert!(!found.is_empty());
            begun.elapsed().as_secs_f64() * 1_000.0
        };
        let first = timed(&memory).await;
        let mut later = Vec::new();
        for round in 0..100 {
            let entry = MemoryEntry::new(format!("new {round}"), "word7", Timestamp::default(), Provenance::USER);
            other.save(&me, entry).await.unwrap();
            later.push(timed(&memory).await);
        }
        later.sort_by(f64::total_cmp);
        let floor = {
            let begun = Instant::now();
            for _ in 0..100 {
                memory.get(&me, &"1".into()).await.unwrap();
            }
            begun.elapsed().as_secs_f64() * 10.0
        };
        println!(
            "first search {first:.0} ms, later {:.2} ms (median), one row by its id {floor:.2} ms",
            later[50]
        );
    })
    .await;
}
