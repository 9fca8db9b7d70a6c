//! Reading the journal on disk while others write it, and who may read its files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rockbot_core::testing::ManualClock;
use rockbot_core::turn::{Acceptance, Claim, RunState, StoredRun, TurnJournal};
use rockbot_store::file::{FileTurnJournal, JournalOptions};
use tempfile::TempDir;

use crate::support::journal::{json, raw, record, run};

const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn small(folder: &TempDir, clock: &ManualClock) -> FileTurnJournal {
    let options = JournalOptions::default()
        .with_segment_bytes(1_000)
        .with_clock(Arc::new(clock.clone()));
    FileTurnJournal::open_with(folder.path(), options).unwrap()
}

async fn accept(journal: &FileTurnJournal, name: &str, clock: &ManualClock) -> Claim {
    match journal.accept(&run(name, clock), "me", LEASE).await.unwrap() {
        Acceptance::New(claim) => claim,
        other => panic!("{name} is known: {other:?}"),
    }
}

async fn append(journal: &FileTurnJournal, claim: &Claim, body: &str, clock: &ManualClock) {
    journal.append(claim, &[record(clock, body)]).await.unwrap();
}

/// Finishes so many runs that several segments fill up.
async fn finish_some(journal: &FileTurnJournal, day: usize, clock: &ManualClock) {
    for index in 0..10 {
        let claim = accept(journal, &format!("{day} {index}"), clock).await;
        append(journal, &claim, "0", clock).await;
        journal.finish(&claim, &raw("1")).await.unwrap();
    }
}

fn bodies(stored: &StoredRun) -> Vec<String> {
    stored.records.iter().map(|record| json(&record.body)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_is_read_whole_while_its_lines_move_to_other_places() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = Arc::new(small(&folder, &clock));
    let long = accept(&journal, "long", &clock).await;
    let reads = (0..3).map(|_| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let expected: Vec<_> = (0..30).map(|day| day.to_string()).collect();
            let mut seen = 0;
            while seen < expected.len() {
                let stored = journal.read(&"long".into()).await.unwrap().unwrap();
                assert_eq!(stored.accepted.key.message.as_str(), "long");
                let told = bodies(&stored);
                assert!(told.len() >= seen, "what was read once is read again");
                seen = told.len();
                assert_eq!(told, expected[..seen]);
                tokio::task::yield_now().await;
            }
        })
    });
    let reads: Vec<_> = reads.collect();
    for day in 0..30 {
        // Each day's lines of the others go away on the next: what is left of a segment is written again.
        finish_some(&journal, 2 * day, &clock).await;
        append(&journal, &long, &day.to_string(), &clock).await;
        finish_some(&journal, 2 * day + 1, &clock).await;
        clock.advance(DAY);
    }
    for read in reads {
        read.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_delivered_again_is_known_or_new_while_old_outcomes_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = Arc::new(small(&folder, &clock));
    let stop = Arc::new(AtomicBool::new(false));
    let again = {
        let journal = journal.clone();
        let clock = clock.clone();
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut new = 0;
            let mut known = 0;
            while !stop.load(Ordering::SeqCst) || known == 0 {
                match journal.accept(&run("again", &clock), "me", LEASE).await.unwrap() {
                    Acceptance::New(claim) => {
                        new += 1;
                        journal.finish(&claim, &raw("7")).await.unwrap();
                    }
                    Acceptance::Known(RunState::Finished(outcome)) => {
                        known += 1;
                        assert_eq!(json(&outcome), "7");
                    }
                    other => panic!("{other:?}"),
                }
                tokio::task::yield_now().await;
            }
            (new, known)
        })
    };
    for day in 0..30 {
        finish_some(&journal, day, &clock).await;
        clock.advance(DAY);
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::SeqCst);
    let (new, known) = again.await.unwrap();
    assert!(
        (1..=31).contains(&new),
        "once a day at most: {new} times, and known {known} times"
    );
}

#[tokio::test]
async fn a_run_whose_acceptance_stands_twice_does_not_forget_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = small(&folder, &clock);
    let paying = accept(&journal, "paying", &clock).await;
    append(&journal, &paying, "1", &clock).await;
    drop(journal);

    let first = std::fs::read_to_string(folder.path().join("turns-00000001.jsonl")).unwrap();
    let accepted = format!("{}\n", first.lines().next().unwrap());
    std::fs::write(folder.path().join("turns-00000002.jsonl"), accepted).unwrap();
    let journal = small(&folder, &clock);
    let open = journal.read(&"paying".into()).await.unwrap().unwrap();
    assert_eq!(bodies(&open), ["1"]);

    let paying = journal.claim(&"paying".into(), "me", LEASE).await.unwrap().unwrap();
    journal.finish(&paying, &raw("2")).await.unwrap();
    let ended = journal.read(&"paying".into()).await.unwrap().unwrap();
    assert_eq!(bodies(&ended), ["1"]);
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_cannot_read_the_files_of_a_journal() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = small(&folder, &clock);
    let _long = accept(&journal, "long", &clock).await;
    finish_some(&journal, 0, &clock).await;
    clock.advance(2 * DAY);
    finish_some(&journal, 1, &clock).await;
    let first = std::fs::read_to_string(folder.path().join("turns-00000001.jsonl")).unwrap();
    assert_eq!(first.lines().count(), 1, "this segment was written again");
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}
