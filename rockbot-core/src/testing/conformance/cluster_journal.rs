//! The conformance suite of [`ClusterJournal`].

use std::time::Duration;

use serde_json::value::RawValue;

use crate::Digest;
use crate::testing::ManualClock;
use crate::turn::{
    Acceptance, Claim, ClusterJournal, JournalError, RunAccepted, RunBody, RunKey, RunQuery, TurnJournal,
};

/// Checks that the values that `make` creates keep the contract of [`ClusterJournal`].
///
/// The journal must be empty and must measure leases on the clock that `make` is given.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn cluster_journal<J: TurnJournal>(make: impl AsyncFn(ManualClock) -> J) {
    let clock = ManualClock::default();
    runs_of_a_session_have_one_order(&make(clock.clone()).await).await;
    a_run_that_left_comes_last(&make(clock.clone()).await).await;
    a_run_that_another_owner_claimed_keeps_its_place(&make(clock.clone()).await, &clock).await;
    a_run_that_stays_without_owner_counts_no_more(&make(clock.clone()).await, &clock).await;
    heartbeats_renew_the_leases_of_an_owner(&make(clock.clone()).await, &clock).await;
    lists_the_runs_that_can_be_claimed(&make(clock.clone()).await, &clock).await;
    a_heartbeat_tells_of_cancellations(&make(clock.clone()).await).await;
}

const LEASE: Duration = Duration::from_secs(60);

async fn runs_of_a_session_have_one_order(journal: &impl TurnJournal) {
    let first = accept(journal, "a", "me", true).await;
    let second = accept(journal, "b", "another", true).await;
    let unordered = accept(journal, "c", "another", false).await;
    let elsewhere = ordered("d", "elsewhere");
    let elsewhere = accepted(journal, &elsewhere, "another").await;
    assert!(
        !enter(journal, &second).await,
        "a run waits for an earlier run of its session"
    );
    assert!(
        enter(journal, &first).await,
        "the first run of a session waits for none"
    );
    assert!(enter(journal, &unordered).await, "a run without order waits for none");
    assert!(enter(journal, &elsewhere).await, "a run waits for no other session");
    finish(journal, &first).await;
    assert!(enter(journal, &second).await, "a run waits for no run that has ended");
}

async fn a_run_that_left_comes_last(journal: &impl TurnJournal) {
    let first = accept(journal, "a", "me", true).await;
    let second = accept(journal, "b", "another", true).await;
    leave(journal, &first).await;
    assert!(
        enter(journal, &second).await,
        "a run waits for no run that left its place"
    );
    assert!(!enter(journal, &first).await, "a run that enters again is the last one");
    finish(journal, &second).await;
    assert!(enter(journal, &first).await, "a run that enters again has a place");
}

async fn a_run_that_another_owner_claimed_keeps_its_place(journal: &impl TurnJournal, clock: &ManualClock) {
    let stale = accept(journal, "a", "me", true).await;
    clock.advance(LEASE);
    let second = accept(journal, "b", "me", true).await;
    let claimed = journal.claim(stale.run(), "another", LEASE).await;
    let claimed = claimed.expect("the journal can be read").expect("the lease has ended");
    for refused in [
        cluster(journal).enter_session(&stale).await.map(|_| ()),
        cluster(journal).leave_session(&stale).await,
    ] {
        assert!(matches!(refused, Err(JournalError::Fenced(run)) if run == *stale.run()));
    }
    assert!(!enter(journal, &second).await, "a run that was claimed keeps its place");
    assert!(enter(journal, &claimed).await, "a run that was claimed keeps its place");
}

async fn a_run_that_stays_without_owner_counts_no_more(journal: &impl TurnJournal, clock: &ManualClock) {
    accept(journal, "a", "gone", true).await;
    clock.advance(LEASE * 5);
    let second = accept(journal, "b", "me", true).await;
    assert!(
        !enter(journal, &second).await,
        "a run waits for a run that may be taken over"
    );
    clock.advance(LEASE * 6);
    assert!(enter(journal, &second).await, "a run does not wait for ever");
}

async fn heartbeats_renew_the_leases_of_an_owner(journal: &impl TurnJournal, clock: &ManualClock) {
    let mine = accept(journal, "a", "me", true).await;
    let other = accept(journal, "b", "another", true).await;
    accept(journal, "forgotten", "me", true).await;
    clock.advance(LEASE / 2);
    renew(journal, "me").await;
    clock.advance(LEASE / 2);
    assert_eq!(
        free(journal).await,
        ["b", "forgotten"],
        "a heartbeat renews the leases of the named runs of its owner alone"
    );
    let claimed = journal.claim(mine.run(), "another", LEASE).await;
    assert_eq!(
        claimed.expect("the journal can be read"),
        None,
        "a renewed lease is not over"
    );
    let claimed = journal.claim(other.run(), "me", LEASE).await;
    assert!(claimed.expect("the journal can be read").is_some());
    clock.advance(LEASE / 2);
    renew(journal, "another").await;
    clock.advance(LEASE / 2);
    assert_eq!(
        free(journal).await,
        ["a", "b", "forgotten"],
        "an owner cannot renew what it has lost"
    );
}

async fn lists_the_runs_that_can_be_claimed(journal: &impl TurnJournal, clock: &ManualClock) {
    accept(journal, "expires", "me", false).await;
    clock.advance(LEASE);
    let released = accept(journal, "released", "me", true).await;
    let ended = accept(journal, "ended", "me", true).await;
    accept(journal, "held", "me", true).await;
    leave(journal, &released).await;
    let name = released.run().clone();
    journal.release(released).await;
    finish(journal, &ended).await;
    assert_eq!(
        free(journal).await,
        ["expires", "released waits"],
        "free runs, oldest first"
    );
    let claimed = journal.claim(&name, "another", LEASE).await;
    let claimed = claimed.expect("the journal can be read").expect("the run is free");
    journal.release(claimed).await;
    assert_eq!(
        free(journal).await,
        ["expires", "released"],
        "a run that was claimed since does not wait"
    );
}

async fn a_heartbeat_tells_of_cancellations(journal: &impl TurnJournal) {
    let run = accept(journal, "a", "me", true).await;
    assert_eq!(renew(journal, "me").await, [""; 0]);
    assert!(
        journal
            .request_cancel(run.run())
            .await
            .expect("the journal can be written")
    );
    assert_eq!(renew(journal, "me").await, ["a"], "the holder learns of a cancellation");
    assert_eq!(renew(journal, "another").await, [""; 0]);
}

fn cluster(journal: &impl TurnJournal) -> &dyn ClusterJournal {
    let cluster = journal.cluster();
    cluster.expect("the journal is one of several processes")
}

fn ordered(name: &str, session: &str) -> RunAccepted {
    let key = RunKey::new("principal".into(), session, name);
    RunAccepted::new(
        name,
        key,
        Digest::of([name]),
        crate::Timestamp::from_millis(1_000),
        null(),
    )
    .with_ordered(true)
}

fn null() -> RunBody {
    RawValue::NULL.to_owned().into()
}

async fn accept(journal: &impl TurnJournal, name: &str, owner: &str, is_ordered: bool) -> Claim {
    accepted(journal, &ordered(name, "session").with_ordered(is_ordered), owner).await
}

async fn accepted(journal: &impl TurnJournal, run: &RunAccepted, owner: &str) -> Claim {
    let accepted = journal.accept(run, owner, LEASE).await;
    let claim = match accepted.expect("the journal can be written") {
        Acceptance::New(claim) => Some(claim),
        Acceptance::Known(_) => None,
    };
    claim.expect("a run that was not accepted before is new")
}

async fn enter(journal: &impl TurnJournal, claim: &Claim) -> bool {
    let entered = cluster(journal).enter_session(claim).await;
    entered.expect("the holder can enter")
}

async fn leave(journal: &impl TurnJournal, claim: &Claim) {
    let left = cluster(journal).leave_session(claim).await;
    left.expect("the holder can leave");
}

async fn finish(journal: &impl TurnJournal, claim: &Claim) {
    let finished = journal.finish(claim, &null()).await;
    finished.expect("the holder can finish");
}

/// Renews the runs `a` and `b` as far as `owner` holds them.
async fn renew(journal: &impl TurnJournal, owner: &str) -> Vec<String> {
    let renewed = cluster(journal).renew(owner, &["a".into(), "b".into()]).await;
    names(&renewed.expect("the journal can be written"))
}

async fn free(journal: &impl TurnJournal) -> Vec<String> {
    let free = cluster(journal).free(&RunQuery::all()).await;
    let free = free.expect("the journal can be read").into_iter();
    free.map(|free| format!("{}{}", free.run, if free.is_waiting { " waits" } else { "" }))
        .collect()
}

fn names(runs: &[crate::TurnId]) -> Vec<String> {
    runs.iter().map(ToString::to_string).collect()
}
