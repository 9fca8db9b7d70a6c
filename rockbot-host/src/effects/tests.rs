//! A recorded call runs once, whatever ends its process.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::MessageEnvelope;
use rockbot_core::testing::{FailingSyncs, ManualClock};
use rockbot_core::tool::{ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::{CallContext, Clock as _, Digest, Timestamp};

use super::log::EffectLine;
use super::{Admission, EFFECT_WINDOW, EffectKey, EffectLedger, EffectLog};

const INTERRUPTED: &str = "unknown: the call was interrupted after it had begun";
const UNRECORDED: &str = "unknown: the call was delivered before, and this worker does not know what became of it";

fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_millis(1_700_000_000_000))
}

fn ledger(folder: &tempfile::TempDir, clock: &ManualClock) -> EffectLedger {
    let log = EffectLog::open(folder.path().join("effects"), false).unwrap();
    EffectLedger::new(Some(log), EFFECT_WINDOW, Arc::new(clock.clone())).unwrap()
}

fn in_memory() -> EffectLedger {
    EffectLedger::new(None, EFFECT_WINDOW, Arc::new(clock())).unwrap()
}

fn key(source: &str, id: &str, arguments: &str) -> EffectKey {
    let envelope = MessageEnvelope::new("t", "").with_source(source);
    let cx = CallContext::new("s").with_idempotency_key(id);
    EffectKey::of(&envelope, &ToolInvokeRequest::new("1", "pay", arguments), &cx)
}

fn response(text: &str) -> ToolInvokeResponse {
    ToolInvokeResponse::new("1", "pay", text)
}

fn named(admission: &Admission<'_>) -> String {
    match admission {
        Admission::New(_) => "new".to_owned(),
        Admission::Ended(response) => response.content.to_string(),
        Admission::Unknown(why) => format!("unknown: {why}"),
        Admission::Unrecorded(error) => format!("unrecorded: {error}"),
    }
}

async fn enter(ledger: &EffectLedger, key: EffectKey, is_repeated: bool) -> String {
    named(&ledger.enter(key, is_repeated, None).await)
}

async fn run(ledger: &EffectLedger, key: EffectKey, text: &str) {
    match ledger.enter(key, false, None).await {
        Admission::New(guard) => guard.end(&response(text)).await,
        other => panic!("{}", named(&other)),
    }
}

#[tokio::test]
async fn a_repetition_gets_the_first_result() {
    let ledger = in_memory();
    let pay = key("agent", "turn/1", "{}");
    run(&ledger, pay, "paid").await;
    assert_eq!(enter(&ledger, pay, true).await, "paid");
    for other in [
        key("agent", "turn/2", "{}"),
        key("agent", "turn/1", r#"{"n":1}"#),
        key("other", "turn/1", "{}"),
    ] {
        assert_eq!(enter(&ledger, other, false).await, "new");
    }
}

#[tokio::test]
async fn a_call_that_may_have_begun_elsewhere_does_not_begin() {
    let ledger = in_memory();
    assert_eq!(enter(&ledger, key("agent", "1", "{}"), true).await, UNRECORDED);
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_unknown() {
    let ledger = in_memory();
    let pay = key("agent", "1", "{}");
    drop(ledger.enter(pay, false, None).await);
    assert_eq!(enter(&ledger, pay, false).await, INTERRUPTED);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_waits_for_the_running_call_until_its_deadline() {
    let ledger = in_memory();
    let pay = key("agent", "1", "{}");
    let Admission::New(running) = ledger.enter(pay, false, None).await else {
        panic!("it is new");
    };
    let soon = tokio::time::Instant::now() + Duration::from_secs(1);
    let hasty = named(&ledger.enter(pay, true, Some(soon)).await);
    assert_eq!(hasty, "unknown: the same call is still running");
    let (patient, ()) = tokio::join!(enter(&ledger, pay, true), async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        running.end(&response("paid")).await;
    });
    assert_eq!(patient, "paid");
}

#[tokio::test]
async fn the_next_process_knows_what_ended_and_what_had_begun() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let ended = key("agent", "1", "{}");
    let begun = key("agent", "2", "{}");
    let first = ledger(&folder, &clock);
    run(&first, ended, "paid").await;
    let Admission::New(running) = first.enter(begun, false, None).await else {
        panic!("it is new");
    };
    // As a killed process does: the guard leaves no further line in the file.
    std::mem::forget(running);
    drop(first);
    let next = ledger(&folder, &clock);
    assert_eq!(enter(&next, ended, true).await, "paid");
    assert_eq!(enter(&next, begun, true).await, INTERRUPTED);
    assert_eq!(enter(&next, begun, false).await, INTERRUPTED);
}

#[tokio::test]
async fn a_torn_line_is_skipped_and_the_file_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let one = key("agent", "1", "{}");
    let two = key("agent", "2", "{}");
    run(&ledger(&folder, &clock), one, "paid").await;
    let file = folder.path().join("effects/effects.jsonl");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.extend_from_slice(br#"{"key":"00"#);
    std::fs::write(&file, bytes).unwrap();
    run(&ledger(&folder, &clock), two, "paid, too").await;
    let next = ledger(&folder, &clock);
    assert_eq!(enter(&next, one, true).await, "paid");
    assert_eq!(enter(&next, two, true).await, "paid, too");
}

#[tokio::test]
async fn calls_are_forgotten_after_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let old = key("agent", "1", "{}");
    let young = key("agent", "2", "{}");
    let first = ledger(&folder, &clock);
    run(&first, old, "paid").await;
    clock.advance(EFFECT_WINDOW / 2);
    run(&first, young, "paid later").await;
    clock.advance(EFFECT_WINDOW / 2 + Duration::from_secs(1));
    assert_eq!(enter(&first, old, true).await, UNRECORDED);
    drop(first);
    let next = ledger(&folder, &clock);
    assert_eq!(enter(&next, young, true).await, "paid later");
    let text = std::fs::read_to_string(folder.path().join("effects/effects.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1, "the file was written anew: {text}");
}

#[tokio::test]
async fn a_result_that_is_too_large_is_forgotten_but_not_its_call() {
    let ledger = in_memory();
    let pay = key("agent", "1", "{}");
    run(&ledger, pay, &"x".repeat(300 * 1024)).await;
    let expected = "unknown: the call has run, and its result is not kept any more";
    assert_eq!(enter(&ledger, pay, true).await, expected);
}

/// A ledger whose file is written anew whenever it has grown by 1 000 bytes.
fn compacting(folder: &tempfile::TempDir, clock: &ManualClock, is_synced: bool) -> EffectLedger {
    let log = EffectLog::open(folder.path().join("effects"), is_synced).unwrap();
    let log = log.with_max_growth(1000);
    EffectLedger::new(Some(log), EFFECT_WINDOW, Arc::new(clock.clone())).unwrap()
}

fn lines(folder: &tempfile::TempDir) -> usize {
    let text = std::fs::read_to_string(folder.path().join("effects/effects.jsonl")).unwrap();
    text.lines().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_is_shortened_while_calls_begin_and_end() {
    const CALLS: usize = 400;
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let pay = |number: usize| key("agent", &number.to_string(), "{}");
    let first = Arc::new(compacting(&folder, &clock, false));
    let mut paying = tokio::task::JoinSet::new();
    for payer in 0..4 {
        let ledger = Arc::clone(&first);
        paying.spawn(async move {
            for number in (payer..CALLS).step_by(4) {
                run(&ledger, pay(number), &format!("paid {number}")).await;
            }
        });
    }
    while let Some(paid) = paying.join_next().await {
        paid.unwrap();
    }
    assert!(
        lines(&folder) < 2 * CALLS,
        "beginnings of calls that have ended are gone"
    );
    drop(first);
    let next = ledger(&folder, &clock);
    for number in 0..CALLS {
        assert_eq!(enter(&next, pay(number), true).await, format!("paid {number}"));
    }
}

/// After the file was written anew, calls begin in the new file or, while that cannot be opened,
/// not at all.
#[tokio::test]
async fn calls_wait_for_a_file_that_cannot_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let pay = key("agent", "1", "{}");
    let refused = key("agent", "2", "{}");
    let first = compacting(&folder, &clock, false);
    run(&first, pay, &"x".repeat(2000)).await;
    assert_eq!(lines(&folder), 1, "the file was written anew");
    let file = folder.path().join("effects/effects.jsonl");
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let told = enter(&first, refused, false).await;
    assert!(
        told.starts_with("unrecorded: ") && told.contains("effects.jsonl"),
        "{told}"
    );
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, kept).unwrap();
    run(&first, refused, "paid, too").await;
    drop(first);
    let next = ledger(&folder, &clock);
    assert_eq!(enter(&next, pay, true).await, "x".repeat(2000));
    assert_eq!(enter(&next, refused, true).await, "paid, too");
}

/// A file that cannot be written anew keeps growing, and nothing in it is lost.
#[tokio::test]
async fn a_file_that_cannot_be_shortened_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let one = key("agent", "1", "{}");
    let two = key("agent", "2", "{}");
    let first = compacting(&folder, &clock, false);
    let failing = FailingSyncs::of(folder.path().join("effects/effects.jsonl.tmp"));
    run(&first, one, &"x".repeat(2000)).await;
    assert_eq!(lines(&folder), 2, "the old file stays");
    drop(failing);
    run(&first, two, &"y".repeat(2000)).await;
    assert_eq!(lines(&folder), 2, "the next growth shortens it");
    drop(first);
    let next = ledger(&folder, &clock);
    assert_eq!(enter(&next, one, true).await, "x".repeat(2000));
    assert_eq!(enter(&next, two, true).await, "y".repeat(2000));
}

#[test]
fn records_reach_the_file_that_has_the_name_after_a_folder_that_cannot_be_synced() {
    for is_synced in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let at = clock().now();
        let folder = scratch.path().join("effects");
        let line = |id: &str| EffectLine::began(Digest::of([id]), at);
        let mut log = EffectLog::open(folder.clone(), is_synced).unwrap();
        log.append(&line("before")).unwrap();
        let failing = FailingSyncs::of(&folder);
        assert!(log.rewrite([line("kept")].into_iter()).is_err());
        let meanwhile = log.append(&line("meanwhile"));
        assert_eq!(
            meanwhile.is_err(),
            is_synced,
            "a call that must be durable does not begin"
        );
        drop(failing);
        log.append(&line("later")).unwrap();
        let mut found = Vec::new();
        log.read(|line| found.push(line.key)).unwrap();
        let expected: &[&str] = if is_synced {
            &["kept", "later"]
        } else {
            &["kept", "meanwhile", "later"]
        };
        assert_eq!(found, expected.iter().map(|id| Digest::of([id])).collect::<Vec<_>>());
    }
}
