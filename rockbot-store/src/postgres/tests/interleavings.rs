//! All interleavings of what two owners of a turn do, on the journal in memory and in the database.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::testing::ManualClock;
use rockbot_core::turn::{
    Acceptance, Claim, Fence, InMemoryTurnJournal, JournalError, RunAccepted, RunBody, RunKey, RunRecord, TurnJournal,
};
use rockbot_core::{Digest, Timestamp};
use serde_json::value::RawValue;

use super::with_server;
use crate::postgres::PostgresOptions;

const LEASE: Duration = Duration::from_secs(60);

/// A step of one of the two owners, or the end of every lease.
#[derive(Debug, Clone, Copy)]
enum Step {
    Claim(usize),
    Append(usize),
    Finish(usize),
    Release(usize),
    Wait,
}

/// The steps from which all sequences are made.
fn steps() -> Vec<Step> {
    let of = |owner| {
        [
            Step::Claim(owner),
            Step::Append(owner),
            Step::Finish(owner),
            Step::Release(owner),
        ]
    };
    [0, 1].into_iter().flat_map(of).chain([Step::Wait]).collect()
}

/// Returns the sequence with this number, of `len` steps.
fn sequence(mut number: usize, len: usize) -> Vec<Step> {
    let steps = steps();
    let next = |_| {
        let step = steps[number % steps.len()];
        number /= steps.len();
        step
    };
    (0..len).map(next).collect()
}

fn json(text: String) -> RunBody {
    RawValue::from_string(text).unwrap().into()
}

/// The steps of one sequence that were accepted, and the fences of the writes among them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Played {
    accepted: Vec<bool>,
    writes: Vec<(Write, Fence)>,
}

/// The kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Append,
    Finish,
}

/// Plays a sequence on a new turn, whose first holder is the owner 0. Owners use their last claim for
/// ever, as a process does that was paused.
async fn play(journal: &impl TurnJournal, clock: &ManualClock, name: &str, steps: &[Step]) -> Played {
    let key = RunKey::new("local".into(), "session", name);
    let run = RunAccepted::new(
        name,
        key,
        Digest::of([name]),
        Timestamp::default(),
        json("null".to_owned()),
    );
    let Acceptance::New(first) = journal.accept(&run, "0", LEASE).await.unwrap() else {
        panic!("the turn is new")
    };
    let mut claims = [Some(first.fence()), None];
    let mut played = Played::default();
    for (at, step) in steps.iter().enumerate() {
        let claim = |owner: usize| claims[owner].map(|fence| Claim::new(name.into(), fence));
        let accepted = match *step {
            Step::Wait => {
                clock.advance(LEASE);
                true
            }
            Step::Claim(owner) => {
                let claim = journal.claim(&name.into(), &owner.to_string(), LEASE).await.unwrap();
                let fence = claim.map(|claim| claim.fence());
                claims[owner] = fence.or(claims[owner]);
                fence.is_some()
            }
            Step::Append(owner) => match claim(owner) {
                Some(claim) => {
                    let record = RunRecord::new(Timestamp::default(), json(at.to_string()));
                    let is_accepted = is_accepted(journal.append(&claim, &[record]).await.map(drop));
                    played
                        .writes
                        .extend(is_accepted.then_some((Write::Append, claim.fence())));
                    is_accepted
                }
                None => false,
            },
            Step::Finish(owner) => match claim(owner) {
                Some(claim) => {
                    let is_accepted = is_accepted(journal.finish(&claim, &json(at.to_string())).await);
                    played
                        .writes
                        .extend(is_accepted.then_some((Write::Finish, claim.fence())));
                    is_accepted
                }
                None => false,
            },
            Step::Release(owner) => {
                if let Some(claim) = claim(owner) {
                    journal.release(claim).await;
                }
                true
            }
        };
        played.accepted.push(accepted);
    }
    played
}

fn is_accepted(written: Result<(), JournalError>) -> bool {
    match written {
        Ok(()) => true,
        Err(JournalError::Fenced(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Checks that no write of an owner was accepted after a write of a later one, and none after the end.
fn check(steps: &[Step], played: &Played) {
    let fences: Vec<_> = played.writes.iter().map(|(_, fence)| fence).collect();
    assert!(fences.is_sorted(), "{steps:?}: {played:?}");
    let ends = played.writes.iter().position(|(write, _)| *write == Write::Finish);
    assert!(
        ends.is_none_or(|end| end + 1 == played.writes.len()),
        "{steps:?}: {played:?}"
    );
}

#[tokio::test]
async fn no_sequence_lets_two_owners_write() {
    const LEN: usize = 5;
    let clock = ManualClock::default();
    let journal = InMemoryTurnJournal::new(Arc::new(clock.clone()));
    let (mut writes, mut takeovers) = (0, 0);
    for number in 0..steps().len().pow(u32::try_from(LEN).unwrap()) {
        let steps = sequence(number, LEN);
        let played = play(&journal, &clock, &number.to_string(), &steps).await;
        check(&steps, &played);
        writes += played.writes.len();
        takeovers += usize::from(played.writes.windows(2).any(|pair| pair[0].1 != pair[1].1));
    }
    assert!(
        writes > 10_000 && takeovers > 100,
        "{writes} writes, {takeovers} takeovers"
    );
}

#[tokio::test]
async fn the_database_accepts_what_the_journal_in_memory_accepts() {
    const LEN: usize = 3;
    with_server(async |server| {
        let clock = ManualClock::default();
        let options = PostgresOptions::default().with_clock(Arc::new(clock.clone()));
        let in_database = server.stores_with(options).await.journal;
        let in_memory = InMemoryTurnJournal::new(Arc::new(clock.clone()));
        for number in 0..steps().len().pow(u32::try_from(LEN).unwrap()) {
            let (steps, name) = (sequence(number, LEN), number.to_string());
            let expected = play(&in_memory, &clock, &name, &steps).await;
            let played = play(&in_database, &clock, &name, &steps).await;
            check(&steps, &played);
            assert_eq!(played.accepted, expected.accepted, "{steps:?}");
        }
    })
    .await;
}
