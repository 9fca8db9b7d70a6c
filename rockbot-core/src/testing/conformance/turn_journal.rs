//! The conformance suite of [`TurnJournal`].

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::testing::ManualClock;
use crate::turn::{
    Acceptance, Claim, JournalError, RunAccepted, RunBody, RunKey, RunQuery, RunRecord, RunState, StoredRun,
    TurnJournal,
};
use crate::{Clock, Digest, Timestamp, TurnId};

/// Checks that the values that `make` creates keep the contract of [`TurnJournal`].
///
/// The journal must be empty and must measure leases on the clock that `make` is given.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn turn_journal<J: TurnJournal>(make: impl AsyncFn(ManualClock) -> J) {
    let clock = ManualClock::default();
    accepts_a_run_once(&make(clock.clone()).await).await;
    refuses_another_body_under_a_known_id(&make(clock.clone()).await).await;
    returns_records_in_order(&make(clock.clone()).await).await;
    keeps_runs_apart(&make(clock.clone()).await).await;
    keeps_an_outcome(&make(clock.clone()).await, &clock).await;
    lists_unfinished_runs_oldest_first(&make(clock.clone()).await, &clock).await;
    a_held_run_cannot_be_claimed(&make(clock.clone()).await).await;
    fences_the_holder_whose_lease_ran_out(&make(clock.clone()).await, &clock).await;
    appending_extends_the_lease(&make(clock.clone()).await, &clock).await;
    a_released_run_can_be_claimed(&make(clock.clone()).await).await;
    lists_the_runs_of_one_agent(&make(clock.clone()).await).await;
    a_request_to_cancel_reaches_the_holder(&make(clock.clone()).await).await;
}

const LEASE: Duration = Duration::from_secs(60);

async fn accepts_a_run_once(journal: &impl TurnJournal) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    assert_eq!(claim.run(), &run.run, "a claim names its run");
    for owner in ["me", "another"] {
        let again = journal
            .accept(&run, owner, LEASE)
            .await
            .expect("the journal can be written");
        assert!(
            matches!(again, Acceptance::Known(RunState::Unfinished)),
            "a run that was accepted before is known"
        );
    }
    let stored = read(journal, &run.run).await;
    assert_eq!(json(&stored.accepted), json(&run), "a run is kept as it was accepted");
    assert!(stored.records.is_empty() && matches!(stored.state, RunState::Unfinished));
    let unknown = journal
        .read(&TurnId::from("unknown"))
        .await
        .expect("the journal can be read");
    assert!(unknown.is_none(), "nothing is known of other runs");
}

async fn refuses_another_body_under_a_known_id(journal: &impl TurnJournal) {
    let known = run("a");
    let other = RunAccepted {
        digest: Digest::of(["other"]),
        ..run("a")
    };
    let claim = accept(journal, &known).await;
    conflict(journal, &other).await;
    finish(journal, claim, "1").await;
    conflict(journal, &other).await;
    assert_eq!(
        read(journal, &known.run).await.accepted.digest,
        known.digest,
        "the known run is untouched"
    );
}

async fn conflict(journal: &impl TurnJournal, other: &RunAccepted) {
    let refused = journal.accept(other, "me", LEASE).await;
    assert!(
        matches!(&refused, Err(JournalError::Conflict { session, message })
            if *session == other.key.session && *message == other.key.message),
        "another digest under a known id is a conflict that names the message, got {refused:?}"
    );
}

async fn returns_records_in_order(journal: &impl TurnJournal) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    let mut records = ["1", r#"{"b":[2, "\n"]}"#, "3"].map(record);
    records[2].body = RunBody::new(Arc::new(("a value", 3)));
    append(journal, &claim, &records[..2]).await;
    append(journal, &claim, &[]).await;
    append(journal, &claim, &records[2..]).await;
    let stored = read(journal, &run.run).await;
    assert_eq!(
        json(&stored.records),
        json(&records),
        "records come back whole, in the order of their appending"
    );
}

async fn keeps_runs_apart(journal: &impl TurnJournal) {
    let a = run("a");
    let b = run("b");
    let holding_a = accept(journal, &a).await;
    let holding_b = accept(journal, &b).await;
    append(journal, &holding_a, &[record("1")]).await;
    append(journal, &holding_b, &[record("2")]).await;
    append(journal, &holding_a, &[record("3")]).await;
    finish(journal, holding_b, r#""done""#).await;
    let stored = read(journal, &a.run).await;
    assert_eq!(
        json(&stored.records),
        json(&["1", "3"].map(record)),
        "a run has its own records only"
    );
    assert_eq!(json(&stored.accepted), json(&a), "a run has its own request only");
    append(journal, &holding_a, &[record("4")]).await;
}

async fn keeps_an_outcome(journal: &impl TurnJournal, clock: &ManualClock) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    let copy = copy_of(&claim);
    append(journal, &claim, &[record("1")]).await;
    finish(journal, claim, r#"{"text":"done"}"#).await;
    clock.advance(Duration::from_secs(24 * 60 * 60 - 1));

    let again = journal
        .accept(&run, "me", LEASE)
        .await
        .expect("the journal can be written");
    let outcome = match &again {
        Acceptance::Known(RunState::Finished(outcome)) => json(outcome),
        _ => String::new(),
    };
    assert_eq!(
        outcome, r#"{"text":"done"}"#,
        "a redelivery within 24 hours gets the outcome, got {again:?}"
    );
    let stored = read(journal, &run.run).await;
    assert!(matches!(stored.state, RunState::Finished(outcome) if json(&outcome) == r#"{"text":"done"}"#));
    assert!(
        claim_of(journal, &run.run, "me").await.is_none(),
        "a finished run cannot be claimed"
    );
    fenced(journal, copy).await;
}

async fn lists_unfinished_runs_oldest_first(journal: &impl TurnJournal, clock: &ManualClock) {
    let mut claims = Vec::new();
    for name in ["c", "a", "d", "b"] {
        clock.advance(Duration::from_secs(1));
        let run = RunAccepted {
            at: clock.now(),
            ..run(name)
        };
        claims.push(accept(journal, &run).await);
    }
    finish(journal, claims.remove(1), "1").await;
    let unfinished = journal
        .unfinished(&RunQuery::all())
        .await
        .expect("the journal can be read");
    assert_eq!(unfinished, ["c", "d", "b"], "unfinished runs are listed, oldest first");
}

async fn a_held_run_cannot_be_claimed(journal: &impl TurnJournal) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    for owner in ["me", "another"] {
        assert!(
            claim_of(journal, &run.run, owner).await.is_none(),
            "a held run cannot be claimed"
        );
    }
    assert!(
        claim_of(journal, &TurnId::from("unknown"), "me").await.is_none(),
        "an unknown run cannot be claimed"
    );
    append(journal, &claim, &[record("1")]).await;
}

async fn fences_the_holder_whose_lease_ran_out(journal: &impl TurnJournal, clock: &ManualClock) {
    let run = run("a");
    let old = accept(journal, &run).await;
    append(journal, &old, &[record("1")]).await;
    clock.advance(LEASE + Duration::from_secs(1));
    let taken = claim_of(journal, &run.run, "another").await;
    let new = taken.expect("a run whose holder's lease ran out can be claimed");
    assert!(new.fence() > old.fence(), "every claim has a higher fence");

    fenced(journal, old).await;
    append(journal, &new, &[record("2")]).await;
    let stored = read(journal, &run.run).await;
    assert_eq!(
        json(&stored.records),
        json(&["1", "2"].map(record)),
        "who is fenced writes nothing"
    );
    finish(journal, new, "1").await;
}

async fn appending_extends_the_lease(journal: &impl TurnJournal, clock: &ManualClock) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    for _ in 0..3 {
        clock.advance(LEASE * 2 / 3);
        append(journal, &claim, &[record("1")]).await;
    }
    assert!(
        claim_of(journal, &run.run, "another").await.is_none(),
        "who appends keeps the run"
    );
}

async fn a_released_run_can_be_claimed(journal: &impl TurnJournal) {
    let run = run("a");
    let claim = accept(journal, &run).await;
    append(journal, &claim, &[record("1")]).await;
    let copy = copy_of(&claim);
    journal.release(claim).await;
    assert_eq!(
        journal
            .unfinished(&RunQuery::all())
            .await
            .expect("the journal can be read"),
        ["a"],
        "a released run is unfinished"
    );

    let taken = claim_of(journal, &run.run, "another").await;
    let claim = taken.expect("a released run can be claimed at once");
    fenced(journal, copy).await;
    append(journal, &claim, &[record("2")]).await;
    assert_eq!(
        json(&read(journal, &run.run).await.records),
        json(&["1", "2"].map(record))
    );
}

async fn lists_the_runs_of_one_agent(journal: &impl TurnJournal) {
    for (name, agent) in [
        ("a", Some("clerk")),
        ("b", None),
        ("c", Some("cook")),
        ("d", Some("clerk")),
    ] {
        let mut run = run(name);
        run.key.agent = agent.map(str::to_owned);
        accept(journal, &run).await;
        assert_eq!(
            read(journal, &run.run).await.accepted.key,
            run.key,
            "a run keeps its key"
        );
    }
    let list = async |query: RunQuery| journal.unfinished(&query).await.expect("the journal can be read");
    assert_eq!(list(RunQuery::all().with_agent("clerk")).await, ["a", "d"]);
    assert_eq!(list(RunQuery::all().with_agent("nobody")).await, [""; 0]);
    assert_eq!(list(RunQuery::all()).await, ["a", "b", "c", "d"]);
}

async fn a_request_to_cancel_reaches_the_holder(journal: &impl TurnJournal) {
    let request = async |name: &str| {
        journal
            .request_cancel(&name.into())
            .await
            .expect("the journal can be written")
    };
    let appended = async |claim: &Claim| journal.append(claim, &[]).await.expect("the run is held");
    assert!(!request("a").await, "an unknown run cannot be cancelled");
    let (run, other) = (run("a"), run("b"));
    let claim = accept(journal, &run).await;
    let of_other = accept(journal, &other).await;
    assert!(!appended(&claim).await.cancel);
    assert!(request("a").await);
    assert!(appended(&claim).await.cancel);
    assert!(!appended(&of_other).await.cancel, "a request is for one run");
    journal.release(claim).await;
    let next = claim_of(journal, &run.run, "another")
        .await
        .expect("a released run can be claimed");
    assert!(appended(&next).await.cancel, "the next holder is told, too");
    finish(journal, next, "1").await;
    assert!(!request("a").await, "a finished run cannot be cancelled");
}

/// Checks that `old` can neither append nor finish, nor give the run of its successor away.
async fn fenced(journal: &impl TurnJournal, old: Claim) {
    let copy = copy_of(&old);
    let run = old.run().clone();
    let appended = journal.append(&old, &[record("0")]).await;
    assert!(
        matches!(&appended, Err(JournalError::Fenced(fenced)) if *fenced == run),
        "got {appended:?}"
    );
    let finished = journal.finish(&old, &raw("0")).await;
    assert!(
        matches!(&finished, Err(JournalError::Fenced(fenced)) if *fenced == run),
        "got {finished:?}"
    );
    journal.release(copy).await;
    assert!(
        claim_of(journal, &run, "me").await.is_none(),
        "an old claim cannot give the run back"
    );
}

fn run(name: &str) -> RunAccepted {
    RunAccepted {
        run: TurnId::from(name),
        key: RunKey {
            agent: None,
            principal: "principal".into(),
            source: "tests".to_owned(),
            session: "session".into(),
            message: name.into(),
        },
        digest: Digest::of([name]),
        at: Timestamp::from_millis(1_000),
        is_ordered: false,
        body: raw(r#"{"text": "hello"}"#),
    }
}

fn record(body: &str) -> RunRecord {
    RunRecord {
        at: Timestamp::from_millis(2_000),
        critical: body.len() > 1,
        body: raw(body),
    }
}

fn raw(json: &str) -> RunBody {
    let json = RawValue::from_string(json.to_owned());
    json.expect("the suite writes valid JSON").into()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("a run can be written as JSON")
}

fn copy_of(claim: &Claim) -> Claim {
    Claim::new(claim.run().clone(), claim.fence())
}

async fn accept(journal: &impl TurnJournal, run: &RunAccepted) -> Claim {
    let accepted = journal
        .accept(run, "me", LEASE)
        .await
        .expect("the journal can be written");
    let claim = match accepted {
        Acceptance::New(claim) => Some(claim),
        Acceptance::Known(_) => None,
    };
    claim.expect("a run that was not accepted before is new")
}

async fn append(journal: &impl TurnJournal, claim: &Claim, records: &[RunRecord]) {
    let appended = journal.append(claim, records).await;
    appended.expect("the holder can append");
}

async fn finish(journal: &impl TurnJournal, claim: Claim, outcome: &str) {
    let finished = journal.finish(&claim, &raw(outcome)).await;
    finished.expect("the holder can finish");
}

async fn claim_of(journal: &impl TurnJournal, run: &TurnId, owner: &str) -> Option<Claim> {
    let claimed = journal.claim(run, owner, LEASE).await;
    claimed.expect("the journal can be read")
}

async fn read(journal: &impl TurnJournal, run: &TurnId) -> StoredRun {
    let stored = journal.read(run).await.expect("the journal can be read");
    stored.expect("an accepted run is known")
}
