//! The journal on disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::testing::{ManualClock, ScriptedModel, conformance, mock_tool};
use rockbot_core::turn::{
    Acceptance, Claim, InMemoryTurnJournal, RunQuery, RunState, TurnFailure, TurnJournal, TurnRequest, TurnStatus,
};
use rockbot_host::{AgentHost, Resumed, Stores, TurnError};
use rockbot_store::file::{Durability, FileTurnJournal, JournalOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::support::journal::{Counting, DiskFull, SlowDisk, json, raw, record, run};
use crate::support::{host_of, settle};

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test]
async fn keeps_the_promises_of_a_journal_with_both_durabilities() {
    for durability in [Durability::Process, Durability::Synced] {
        for segment_bytes in [1, 32 << 20] {
            let folders = Mutex::new(Vec::new());
            conformance::turn_journal(async |clock| {
                let folder = tempfile::tempdir().unwrap();
                let options = JournalOptions::default()
                    .with_durability(durability)
                    .with_segment_bytes(segment_bytes)
                    .with_clock(Arc::new(clock));
                let journal = FileTurnJournal::open_with(folder.path(), options).unwrap();
                folders.lock().unwrap().push(folder);
                journal
            })
            .await;
        }
    }
}

async fn accept(journal: &FileTurnJournal, name: &str, clock: &ManualClock) -> Claim {
    match journal.accept(&run(name, clock), "me", LEASE).await.unwrap() {
        Acceptance::New(claim) => claim,
        Acceptance::Known(state) => panic!("{name} is known: {state:?}"),
        other => panic!("{other:?}"),
    }
}

/// Describes some runs as the journal reads them: whether they are finished, and their records.
async fn told(journal: &FileTurnJournal, runs: &[&str]) -> Vec<String> {
    let mut told = Vec::new();
    for name in runs {
        let Some(stored) = journal.read(&TurnId::from(*name)).await.unwrap() else {
            continue;
        };
        let records: Vec<_> = stored.records.iter().map(|record| json(&record.body)).collect();
        let state = match &stored.state {
            RunState::Finished(outcome) => json(outcome),
            _ => "unfinished".to_owned(),
        };
        told.push(format!("{name} {} {state}", records.join(",")));
    }
    told
}

/// The bytes of a journal with an unfinished and a finished run, interleaved.
async fn some_journal(clock: &ManualClock) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let journal = FileTurnJournal::open(folder.path()).unwrap();
    let a = accept(&journal, "a", clock).await;
    journal
        .append(&a, &[record(clock, "1"), record(clock, r#""zwei\n""#)])
        .await
        .unwrap();
    let b = accept(&journal, "b", clock).await;
    journal.append(&b, &[record(clock, "3")]).await.unwrap();
    journal.append(&a, &[record(clock, "4")]).await.unwrap();
    journal.finish(&b, &raw(r#"{"text":"done"}"#)).await.unwrap();
    journal.append(&a, &[record(clock, "5")]).await.unwrap();
    std::fs::read(segment(folder.path(), 1)).unwrap()
}

fn segment(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("turns-{number:08}.jsonl"))
}

fn segments(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_journal_torn_at_any_byte_opens_with_its_whole_lines_and_goes_on() {
    let clock = ManualClock::default();
    let bytes = some_journal(&clock).await;
    let b_finished = r#"b 3 {"text":"done"}"#;
    let steps: [&[&str]; 9] = [
        &[],
        &["a  unfinished"],
        &["a 1 unfinished"],
        &[r#"a 1,"zwei\n" unfinished"#],
        &[r#"a 1,"zwei\n" unfinished"#, "b  unfinished"],
        &[r#"a 1,"zwei\n" unfinished"#, "b 3 unfinished"],
        &[r#"a 1,"zwei\n",4 unfinished"#, "b 3 unfinished"],
        &[r#"a 1,"zwei\n",4 unfinished"#, b_finished],
        &[r#"a 1,"zwei\n",4,5 unfinished"#, b_finished],
    ];
    for cut in 0..=bytes.len() {
        let folder = tempfile::tempdir().unwrap();
        let left = &bytes[..cut];
        std::fs::write(segment(folder.path(), 1), left).unwrap();
        // A line is whole when only its newline is missing.
        let closed = left.iter().filter(|byte| **byte == b'\n').count();
        let whole = closed + usize::from(bytes.get(cut) == Some(&b'\n'));
        for _ in 0..2 {
            let journal = FileTurnJournal::open(folder.path()).unwrap();
            assert_eq!(told(&journal, &["a", "b"]).await, steps[whole], "cut at byte {cut}");
        }
        let journal = FileTurnJournal::open(folder.path()).unwrap();
        let c = accept(&journal, "c", &clock).await;
        journal.append(&c, &[record(&clock, "6")]).await.unwrap();
        drop(journal);
        let journal = FileTurnJournal::open(folder.path()).unwrap();
        assert_eq!(
            told(&journal, &["a", "b"]).await,
            steps[whole],
            "cut at byte {cut}, then written"
        );
        assert_eq!(told(&journal, &["c"]).await, ["c 6 unfinished"], "cut at byte {cut}");
    }
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_skipped_and_left_where_they_are() {
    let clock = ManualClock::default();
    let bytes = some_journal(&clock).await;
    let garbage: [&[u8]; 5] = [
        b"\xff\xfe\x00\n",
        b"\n",
        b"{}\n",
        br#"{"from_the_future":{"run":"a"}}"#,
        b"{\"record\":7}\n",
    ];
    let mut spoiled = Vec::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        spoiled.extend_from_slice(garbage[index % garbage.len()]);
        if !spoiled.ends_with(b"\n") {
            spoiled.push(b'\n');
        }
        spoiled.extend_from_slice(line);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(segment(folder.path(), 1), &spoiled).unwrap();
    let journal = FileTurnJournal::open(folder.path()).unwrap();
    assert_eq!(
        told(&journal, &["a", "b"]).await,
        [r#"a 1,"zwei\n",4,5 unfinished"#, r#"b 3 {"text":"done"}"#]
    );
    assert_eq!(std::fs::read(segment(folder.path(), 1)).unwrap(), spoiled);
}

#[test]
fn a_folder_belongs_to_one_journal_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let open = FileTurnJournal::open(folder.path()).unwrap();
    let refused = FileTurnJournal::open(folder.path()).unwrap_err().to_string();
    assert!(
        refused.contains(
            "is in use: end the process that has it open, or drop the other host of this one with all of its `Agent`s"
        ),
        "{refused}"
    );
    assert!(refused.contains(&folder.path().display().to_string()), "{refused}");
    assert_eq!(in_another_process(folder.path()), refused);
    drop(open);
    assert_eq!(in_another_process(folder.path()), "open");
}

/// Opens the journal in another process, and returns that process's error.
fn in_another_process(folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["journal::another_process", "--exact", "--ignored", "--nocapture"])
        .env("JOURNAL", folder)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("said: "));
    line.unwrap_or_else(|| panic!("got {said}")).to_owned()
}

#[test]
#[ignore = "runs as a child process of another test"]
fn another_process() {
    let opened = FileTurnJournal::open(PathBuf::from(std::env::var_os("JOURNAL").unwrap()));
    let said = opened.map_or_else(|error| error.to_string(), |_| "open".to_owned());
    println!("\nsaid: {said}");
}

fn small(folder: &TempDir, clock: &ManualClock) -> FileTurnJournal {
    let options = JournalOptions::default()
        .with_segment_bytes(1_000)
        .with_clock(Arc::new(clock.clone()));
    FileTurnJournal::open_with(folder.path(), options).unwrap()
}

async fn finish_some(journal: &FileTurnJournal, day: &str, clock: &ManualClock) {
    for index in 0..20 {
        let claim = accept(journal, &format!("{day} {index}"), clock).await;
        journal.append(&claim, &[record(clock, "0")]).await.unwrap();
        journal.finish(&claim, &raw("1")).await.unwrap();
    }
}

#[tokio::test]
async fn a_journal_forgets_what_ended_a_day_ago_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = small(&folder, &clock);
    let old = accept(&journal, "old", &clock).await;
    journal.append(&old, &[record(&clock, "1")]).await.unwrap();
    finish_some(&journal, "first", &clock).await;
    journal.append(&old, &[record(&clock, "2")]).await.unwrap();
    let young = accept(&journal, "young", &clock).await;
    journal.append(&young, &[record(&clock, "3")]).await.unwrap();
    let full = segments(folder.path()).len();
    assert!(full > 5, "{full} segments");

    clock.advance(23 * HOUR);
    finish_some(&journal, "second", &clock).await;
    assert!(
        told(&journal, &["first 0"]).await == ["first 0 0 1"],
        "an outcome is kept for a day"
    );

    clock.advance(2 * HOUR);
    let third = accept(&journal, "third", &clock).await;
    finish_some(&journal, "third", &clock).await;
    assert!(
        told(&journal, &["first 0"]).await.is_empty(),
        "without anybody opening the journal again"
    );
    assert_eq!(told(&journal, &["second 0"]).await, ["second 0 0 1"]);
    let size: u64 = segments(folder.path())
        .iter()
        .map(|name| folder.path().join(name).metadata().unwrap().len())
        .sum();
    assert!(size < 25_000, "{size} bytes are left");

    journal.append(&old, &[record(&clock, "4")]).await.unwrap();
    let expected = ["old 1,2,4 unfinished", "young 3 unfinished", "third  unfinished"];
    assert_eq!(told(&journal, &["old", "young", "third"]).await, expected);
    assert_eq!(
        journal.unfinished(&RunQuery::all()).await.unwrap(),
        ["old", "young", "third"],
        "oldest first"
    );
    drop((journal, third));
    let journal = small(&folder, &clock);
    assert_eq!(told(&journal, &["old", "young", "third"]).await, expected);
    assert_eq!(
        journal.unfinished(&RunQuery::all()).await.unwrap(),
        ["old", "young", "third"]
    );
    assert_eq!(told(&journal, &["second 0"]).await, ["second 0 0 1"]);
}

#[tokio::test]
async fn a_start_by_the_indexes_of_segments_knows_what_their_lines_say() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let options = JournalOptions::default()
        .with_segment_bytes(1 << 20)
        .with_clock(Arc::new(clock.clone()));
    let open = || FileTurnJournal::open_with(folder.path(), options.clone()).unwrap();
    let journal = open();
    let waiting = accept(&journal, "waiting", &clock).await;
    let long = format!("\"{}\"", "x".repeat(100_000));
    for index in 0..30 {
        let claim = accept(&journal, &index.to_string(), &clock).await;
        journal.append(&claim, &[record(&clock, &long)]).await.unwrap();
        journal.append(&waiting, &[record(&clock, "0")]).await.unwrap();
        journal.finish(&claim, &raw("1")).await.unwrap();
    }
    let runs = ["waiting", "0", "15", "29"];
    let known = told(&journal, &runs).await;
    drop(journal);
    let indexes = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".index")).count()
    };
    let full = segments(folder.path()).len() - 1;
    assert_eq!(full, 2);
    // They are written on threads of their own.
    while indexes() < full {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let journal = open();
    assert_eq!(told(&journal, &runs).await, known);
    assert_eq!(journal.unfinished(&RunQuery::all()).await.unwrap(), ["waiting"]);
    drop(journal);
    std::fs::write(folder.path().join("turns-00000001.index"), "not an index").unwrap();
    assert_eq!(told(&open(), &runs).await, known);

    clock.advance(25 * HOUR);
    drop(open());
    assert_eq!(indexes(), 0, "none fits what is left of its segment");
}

#[tokio::test]
async fn a_long_run_that_ends_is_kept_whole_for_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = small(&folder, &clock);
    let old = accept(&journal, "old", &clock).await;
    finish_some(&journal, "first", &clock).await;
    clock.advance(25 * HOUR);
    finish_some(&journal, "second", &clock).await;
    journal.append(&old, &[record(&clock, "1")]).await.unwrap();
    journal.finish(&old, &raw("2")).await.unwrap();
    finish_some(&journal, "third", &clock).await;
    assert_eq!(told(&journal, &["old"]).await, ["old 1 2"]);
    drop(journal);
    assert_eq!(told(&small(&folder, &clock), &["old"]).await, ["old 1 2"]);
}

#[tokio::test]
async fn a_turn_in_a_form_of_another_version_ends_with_an_honest_reply() {
    let request = TurnRequest::new("s", "m1", "hi");
    for resumes in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let host_with = |model| {
            AgentHost::in_memory()
                .chat(model)
                .data_dir(folder.path())
                .build()
                .unwrap()
        };
        let host = host_with(ScriptedModel::new().hangs());
        let running = host.agent().stream_turn(request.clone());
        settle().await;
        host.shutdown(Duration::from_secs(5)).await;
        drop((host, running));
        let path = segment(&folder.path().join("turns"), 1);
        let written = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, written.replace(r#""version":1"#, r#""version":2"#)).unwrap();

        let host = host_with(ScriptedModel::new());
        if resumes {
            assert_eq!(host.resume().await.unwrap(), Resumed::default());
        }
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::UnknownVersion));
        assert!(outcome.text.contains("send it again"), "{}", outcome.text);
        assert_eq!(host.agent().outcome(&outcome.turn).await.unwrap(), outcome);
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_at_any_write_ends_no_turn_that_could_end_otherwise() {
    let writes = 6;
    for full_from in 1..=writes + 1 {
        let model = ScriptedModel::new().calls("send", json!({})).says("sent").says("next");
        let (send, mut handle) = mock_tool("send");
        let journal = InMemoryTurnJournal::default();
        let host = host_of(&model)
            .tool(send)
            .stores(Stores::new().with_journal(Counting::new(journal, DiskFull(full_from, 100))))
            .build()
            .unwrap();
        let answering = tokio::spawn(async move {
            handle.next_call().await.respond("ok");
            handle
        });
        let ended = host.agent().run(TurnRequest::new("s", "m1", "go")).await;
        let acted = answering.is_finished();
        let asked = model.requests().len();
        match full_from {
            // A failure that cannot be recorded is told to the program alone: it would not stay told.
            _ if full_from <= 5 => assert!(matches!(ended, Err(TurnError::Journal(_))), "got {ended:?}"),
            _ => assert_eq!(
                ended.unwrap().text,
                "sent",
                "the end itself may be lost, the reply is not"
            ),
        }
        // Nothing is done that could not be written down first.
        assert_eq!(asked, [0, 0, 1, 1, 2, 2, 2][full_from - 1], "write {full_from}");
        assert_eq!(acted, full_from > 3, "write {full_from}");
        answering.abort();
    }
}

#[tokio::test]
async fn a_session_goes_on_after_a_write_that_failed() {
    for fails in 1..=4 {
        let model = ScriptedModel::new().says("first").says("second").says("third");
        let journal = Counting::new(InMemoryTurnJournal::default(), DiskFull(fails, 1));
        let host = host_of(&model)
            .stores(Stores::new().with_journal(journal))
            .build()
            .unwrap();
        let _ = host.agent().run(TurnRequest::new("s", "m1", "one")).await;
        assert!(host.agent().ask("s", "two").await.is_ok(), "write {fails} failed");
    }
}

fn slow_host(model: &ScriptedModel) -> (AgentHost, Arc<tokio::sync::Semaphore>) {
    let written = Arc::new(tokio::sync::Semaphore::new(0));
    let journal = Counting::new(InMemoryTurnJournal::default(), SlowDisk(written.clone()));
    (
        host_of(model)
            .stores(Stores::new().with_journal(journal))
            .build()
            .unwrap(),
        written,
    )
}

#[tokio::test]
async fn the_same_message_while_its_acceptance_is_written_is_the_same_turn() {
    let model = ScriptedModel::new().says("once");
    let (host, written) = slow_host(&model);
    let request = TurnRequest::new("s", "m1", "hi");
    let running = [(); 3].map(|()| {
        let agent = host.agent().clone();
        let request = request.clone();
        tokio::spawn(async move { agent.run(request).await })
    });
    settle().await;
    written.add_permits(1_000);
    for running in running {
        assert_eq!(running.await.unwrap().unwrap().text, "once");
    }
    model.assert_complete();
}

#[tokio::test]
async fn a_caller_who_leaves_while_the_message_is_accepted_leaves_nothing_half_done() {
    let model = ScriptedModel::new().says("second");
    let (host, written) = slow_host(&model);
    let request = TurnRequest::new("s", "m1", "hi");
    let running = tokio::spawn({
        let agent = host.agent().clone();
        let request = request.clone();
        async move { agent.run(request).await }
    });
    settle().await;
    running.abort();
    settle().await;
    written.add_permits(1_000);
    settle().await;
    let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(host.agent().ask("s", "hello?").await.unwrap().text, "second");
}
