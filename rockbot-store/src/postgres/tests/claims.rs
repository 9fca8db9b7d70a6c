//! Claims of two processes over one database.

use std::time::Duration;

use rockbot_core::turn::{
    Acceptance, Claim, JournalError, RunAccepted, RunBody, RunKey, RunQuery, RunRecord, RunState, TurnJournal,
};
use rockbot_core::{Digest, Timestamp};
use serde_json::value::RawValue;

use super::with_server;
use crate::postgres::{PostgresOptions, PostgresTurnJournal};

const LEASE: Duration = Duration::from_secs(60);

fn run(name: &str) -> RunAccepted {
    let key = RunKey::new("local".into(), "session", name);
    RunAccepted::new(name, key, Digest::of([name]), Timestamp::default(), json("null"))
}

fn json(text: &str) -> RunBody {
    RawValue::from_string(text.to_owned()).unwrap().into()
}

pub(super) fn record(text: &str) -> RunRecord {
    RunRecord::new(Timestamp::default(), json(text))
}

pub(super) async fn accept(journal: &PostgresTurnJournal, name: &str, lease: Duration) -> Option<Claim> {
    match journal.accept(&run(name), "owner", lease).await.unwrap() {
        Acceptance::New(claim) => Some(claim),
        _ => None,
    }
}

pub(super) async fn records(journal: &PostgresTurnJournal, name: &str) -> Vec<String> {
    let stored = journal.read(&name.into()).await.unwrap().unwrap();
    let bodies = stored
        .records
        .iter()
        .map(|record| record.body.to_json().unwrap().get().to_owned());
    bodies.collect()
}

#[tokio::test]
async fn a_process_that_was_paused_beyond_its_lease_writes_nothing() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.journal;
        let (paused, other) = (open().await, open().await);
        // By the clock of the database, where a lease of nothing has always ended.
        let old = accept(&paused, "a", Duration::ZERO).await.unwrap();
        paused.append(&old, &[record("1")]).await.unwrap();
        assert!(accept(&other, "a", LEASE).await.is_none(), "one message makes one turn");
        let new = other.claim(&"a".into(), "other", LEASE).await.unwrap().unwrap();

        for refused in [
            paused.append(&old, &[record("2")]).await.map(drop),
            paused.append(&old, &[]).await.map(drop),
            paused.finish(&old, &json("2")).await,
        ] {
            assert!(
                matches!(&refused, Err(JournalError::Fenced(run)) if *run == "a"),
                "{refused:?}"
            );
        }
        paused.release(old).await;
        assert!(paused.claim(&"a".into(), "paused", LEASE).await.unwrap().is_none());
        other.append(&new, &[record("3")]).await.unwrap();
        assert_eq!(records(&paused, "a").await, ["1", "3"]);
        assert!(paused.request_cancel(&"a".into()).await.unwrap());
        assert!(other.append(&new, &[]).await.unwrap().cancel);
        other.finish(&new, &json("4")).await.unwrap();
        assert!(matches!(
            paused.accept(&run("a"), "paused", LEASE).await.unwrap(),
            Acceptance::Known(RunState::Finished(outcome)) if outcome.to_json().unwrap().get() == "4"
        ));
        assert!(other.unfinished(&RunQuery::all()).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn of_many_acceptances_and_claims_at_once_one_wins() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.journal;
        let (one, two) = (open().await, open().await);
        for turn in 0..20 {
            let name = format!("turn {turn}");
            let accept = async |journal| accept(journal, &name, Duration::ZERO).await;
            let (a, b, c, d) = tokio::join!(accept(&one), accept(&two), accept(&one), accept(&two));
            let won: Vec<_> = [a, b, c, d].into_iter().flatten().collect();
            assert_eq!(won.len(), 1);

            let run = name.as_str().into();
            let claim = async |journal: &PostgresTurnJournal| journal.claim(&run, "owner", LEASE).await.unwrap();
            let (a, b, c, d) = tokio::join!(claim(&one), claim(&two), claim(&one), claim(&two));
            let claims: Vec<_> = [a, b, c, d].into_iter().flatten().collect();
            assert_eq!(claims.len(), 1);
            assert!(claims[0].fence() > won[0].fence());
        }
    })
    .await;
}

/// Two owners write at the same time, while a third one takes the turn over: the records of a
/// fenced owner are all before those of the next.
#[tokio::test]
async fn appends_of_an_owner_end_where_those_of_the_next_begin() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.journal;
        let journals = [open().await, open().await, open().await];
        let first = accept(&journals[0], "a", Duration::ZERO).await.unwrap();
        journals[0].release(first).await;
        let write = async |journal: &PostgresTurnJournal| {
            let mut written = 0;
            for _ in 0..15 {
                let Some(claim) = journal.claim(&"a".into(), "owner", Duration::ZERO).await.unwrap() else {
                    continue;
                };
                for _ in 0..3 {
                    let appended = journal.append(&claim, &[record(&claim.fence().0.to_string())]).await;
                    written += usize::from(appended.is_ok());
                }
            }
            written
        };
        let (a, b, c) = tokio::join!(write(&journals[0]), write(&journals[1]), write(&journals[2]));
        let fences: Vec<u64> = records(&journals[0], "a")
            .await
            .iter()
            .map(|fence| fence.parse().unwrap())
            .collect();
        assert_eq!(fences.len(), a + b + c, "what was accepted is there once");
        assert!(fences.is_sorted(), "{fences:?}");
        assert!(
            fences.len() > 15 && fences[0] < *fences.last().unwrap(),
            "the owners took turns: {fences:?}"
        );
    })
    .await;
}

/// A statement can see a turn as it was before another process claimed it.
#[tokio::test]
async fn an_append_that_is_late_is_refused_whatever_the_next_owner_did() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await.journal;
        let (paused, other) = (open().await, open().await);
        for (turn, (appends, finishes)) in [(0, false), (1, false), (0, true), (2, true)].into_iter().enumerate() {
            let name = format!("turn {turn}");
            let old = accept(&paused, &name, Duration::ZERO).await.unwrap();
            paused.append(&old, &[record("1")]).await.unwrap();
            let is_written = paused
                .append_late(&old, "[]", async || {
                    let new = other.claim(&(&*name).into(), "other", LEASE).await.unwrap().unwrap();
                    for _ in 0..appends {
                        other.append(&new, &[record("2")]).await.unwrap();
                    }
                    if finishes {
                        other.finish(&new, &json("3")).await.unwrap();
                    }
                })
                .await;
            assert!(!is_written, "after {appends} appends, finished: {finishes}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_is_claimed_again_and_again_stays_small() {
    with_server(async |server| {
        let schema = server.new_schema();
        let journal = server.open(&schema, PostgresOptions::default()).await.journal;
        let claim = accept(&journal, "a", Duration::ZERO).await.unwrap();
        journal.append(&claim, &[record("1")]).await.unwrap();
        let claims = "SELECT 'a', n, '[]' FROM generate_series(1, 15000) n";
        server.sql(&format!("INSERT INTO {schema}.turn_record {claims}")).await;
        let claim = journal.claim(&"a".into(), "me", LEASE).await.unwrap().unwrap();
        journal.append(&claim, &[record("2")]).await.unwrap();
        assert_eq!(records(&journal, "a").await, ["1", "2"]);
        let rows = format!("SELECT 1 / (count(*) = 10003)::int FROM {schema}.turn_record");
        server.sql(&rows).await;
    })
    .await;
}

/// A connection that breaks after the commit makes a caller send the same append again.
#[tokio::test]
async fn an_append_whose_answer_was_lost_is_there_once() {
    with_server(async |server| {
        let journal = server.stores().await.journal;
        let claim = accept(&journal, "a", LEASE).await.unwrap();
        journal.append(&claim, &[record("1")]).await.unwrap();
        journal.append(&claim, &[record("2")]).await.unwrap();
        journal.lose_the_last_answer(&claim);
        journal.append(&claim, &[record("2")]).await.unwrap();
        assert_eq!(records(&journal, "a").await, ["1", "2"]);
        journal.lose_the_last_answer(&claim);
        journal.append(&claim, &[record("3")]).await.unwrap();
        assert_eq!(records(&journal, "a").await, ["1", "2", "3"]);
        journal.finish(&claim, &json("4")).await.unwrap();
        journal.finish(&claim, &json("4")).await.unwrap();
        assert!(matches!(
            journal.finish(&claim, &json("5")).await,
            Err(JournalError::Fenced(_))
        ));
    })
    .await;
}
