//! Working memory on disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::Principal;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{StorePath, WorkingLimits, WorkingMemory, WorkingMemoryError, WorkingNote};
use rockbot_core::testing::{ManualClock, conformance};
use rockbot_memory::{FileWorkingMemory, WorkingMemoryOptions};
use serde_json::{Value, json};

use crate::support::files::{files, names, write};
use crate::support::kill;

const HOUR: Duration = Duration::from_secs(3600);

fn me() -> Principal {
    Principal::default()
}

fn open(folder: &Path, clock: &ManualClock) -> FileWorkingMemory {
    let options = WorkingMemoryOptions::default().with_clock(Arc::new(clock.clone()));
    FileWorkingMemory::open_with(folder, options).unwrap()
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).unwrap()
}

fn note(key: &str, value: &str) -> WorkingNote {
    WorkingNote::new(path(key), value, Provenance::TOOL).with_ttl(HOUR)
}

async fn put(memory: &FileWorkingMemory, notes: &[(&str, &str)]) {
    let notes = notes.iter().map(|(key, value)| note(key, value)).collect();
    memory.put(&me(), notes).await.unwrap();
}

async fn texts(memory: &FileWorkingMemory) -> BTreeMap<String, String> {
    let entries = memory.list(&me(), None).await.unwrap();
    entries
        .iter()
        .map(|entry| (entry.key.as_str().to_owned(), entry.value.clone()))
        .collect()
}

async fn check(memory: &FileWorkingMemory, expected: &[(&str, &str)]) {
    let expected = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    assert_eq!(texts(memory).await, expected.collect());
}

#[tokio::test]
async fn keeps_the_promises_of_a_working_memory() {
    let folders = Mutex::new(Vec::new());
    conformance::working_memory(async |clock, entries| {
        let folder = tempfile::tempdir().unwrap();
        let limits = WorkingLimits::default().with_entries(entries);
        let memory = FileWorkingMemory::open_with(
            folder.path(),
            WorkingMemoryOptions::default().with_limits(limits).with_clock(clock),
        )
        .unwrap();
        folders.lock().unwrap().push(folder);
        memory
    })
    .await;
}

#[tokio::test]
async fn a_put_is_a_line_until_it_is_flushed_into_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let memory = open(folder.path(), &clock);
    check(&memory, &[]).await;
    assert_eq!(names(folder.path()), [""; 0], "reading makes no file");
    put(&memory, &[("session/a/x", "1"), ("note", "2")]).await;
    memory.delete(&me(), &path("note")).await.unwrap();
    let times = r#""storedAt":"2026-01-01T00:00:00.000Z","expiresAt":"2026-01-01T01:00:00.000Z""#;
    let rest = r#""provenance":{"source":"tool","trust":"untrusted"}"#;
    let entry = |key: &str, value: &str| format!(r#"{{"key":"{key}","value":"{value}",{times},{rest}}}"#);
    let put_line = format!("{{\"put\":[{},{}]}}\n", entry("session/a/x", "1"), entry("note", "2"));
    let log = put_line + "{\"deleted\":\"note\"}\n";
    assert_eq!(files(folder.path()), [("changes.jsonl".to_owned(), log)].into());
    put(&memory, &[("one", "3"), ("Patrol/b", "4")]).await;
    memory.flush().await.unwrap();
    assert_eq!(names(folder.path()), ["%50atrol.json", "_other.json", "session.json"]);
    let document: Value = serde_json::from_str(&files(folder.path())["session.json"]).unwrap();
    let expected: Value = serde_json::from_str(&format!("[{}]", entry("session/a/x", "1"))).unwrap();
    assert_eq!(document, expected);
    put(&memory, &[("session/a/x", "5")]).await;
    memory.delete(&me(), &path("one")).await.unwrap();
    drop(memory);
    let memory = open(folder.path(), &clock);
    check(&memory, &[("Patrol/b", "4"), ("session/a/x", "5")]).await;
    memory.flush().await.unwrap();
    assert_eq!(names(folder.path()), ["%50atrol.json", "session.json"]);
}

#[tokio::test]
async fn time_passes_while_no_process_runs() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    for is_flushed in [false, true] {
        let memory = open(folder.path(), &clock);
        put(&memory, &[("session/a/x", "1")]).await;
        if is_flushed {
            memory.flush().await.unwrap();
        }
        drop(memory);
        clock.advance(HOUR - Duration::from_millis(1));
        check(&open(folder.path(), &clock), &[("session/a/x", "1")]).await;
        clock.advance(Duration::from_millis(1));
        let memory = open(folder.path(), &clock);
        check(&memory, &[]).await;
        memory.flush().await.unwrap();
        assert_eq!(names(folder.path()), [""; 0], "what expired leaves no file");
    }
}

#[tokio::test]
async fn documents_of_the_original_open_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let entry = |key: &str, value: Value| {
        json!({"key": key, "value": value, "storedAt": "2026-01-01T00:00:00.1234567+00:00", "category": null, "tags": null,
            "expiresAt": "2026-01-01T01:00:00.1234567+00:00", "$type": "System.Diagnostics.Process"})
    };
    let theirs = json!([entry("Session/a/x", json!("1")), entry("Session/a/y", json!("2"))]);
    write(folder.path(), "Session.json", theirs.to_string());
    let mixed = json!([
        entry("patrol/a", json!("3")),
        entry("shared/x", json!("6")),
        entry("../etc", json!("4")),
        entry("patrol/b", json!(5)),
        7
    ]);
    write(folder.path(), "patrol.json", mixed.to_string());
    write(folder.path(), "half.json", "[{");
    let memory = open(folder.path(), &clock);
    let expected = [
        ("Session/a/x", "1"),
        ("Session/a/y", "2"),
        ("patrol/a", "3"),
        ("shared/x", "6"),
    ];
    check(&memory, &expected).await;
    assert_eq!(memory.damaged(), 4);
    memory.delete(&me(), &path("Session/a/y")).await.unwrap();
    memory.flush().await.unwrap();
    let expected = [
        "%53ession.json",
        "half.json.damaged",
        "patrol.json",
        "patrol.json.damaged",
        "shared.json",
    ];
    assert_eq!(names(folder.path()), expected);
    let document: Value = serde_json::from_str(&files(folder.path())["%53ession.json"]).unwrap();
    assert_eq!(document[0]["$type"], "System.Diagnostics.Process");
    assert_eq!(files(folder.path())["patrol.json.damaged"], mixed.to_string());
    drop(memory);
    let memory = open(folder.path(), &clock);
    check(&memory, &[("Session/a/x", "1"), ("patrol/a", "3"), ("shared/x", "6")]).await;
    assert_eq!(memory.damaged(), 0);
}

#[tokio::test]
async fn a_crash_between_documents_and_log_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let memory = open(folder.path(), &clock);
    put(&memory, &[("session/a/x", "1"), ("session/a/y", "1")]).await;
    put(&memory, &[("session/a/x", "2")]).await;
    memory.delete(&me(), &path("session/a/y")).await.unwrap();
    let log = files(folder.path())["changes.jsonl"].clone();
    memory.flush().await.unwrap();
    drop(memory);
    write(folder.path(), "changes.jsonl", format!("{log}no json\n{{\"put\":[{{"));
    let memory = open(folder.path(), &clock);
    check(&memory, &[("session/a/x", "2")]).await;
    put(&memory, &[("session/b/z", "3")]).await;
    assert_eq!(memory.damaged(), 2);
    memory.flush().await.unwrap();
    assert_eq!(names(folder.path()), ["changes.jsonl.damaged", "session.json"]);
    drop(memory);
    check(
        &open(folder.path(), &clock),
        &[("session/a/x", "2"), ("session/b/z", "3")],
    )
    .await;
}

#[tokio::test]
async fn a_long_log_is_folded_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let memory = open(folder.path(), &clock);
    let text = "x".repeat(100_000);
    for at in 0..200 {
        put(&memory, &[(&format!("session/a/{}", at % 3), &text)]).await;
    }
    let lengths: Vec<_> = files(folder.path())
        .into_iter()
        .map(|(name, text)| (name, text.len()))
        .collect();
    assert!(
        matches!(&*lengths, [(log, bytes), (_, document)] if log == "changes.jsonl" && *bytes < 6 << 20 && *document > 300_000)
    );
    drop(memory);
    let memory = open(folder.path(), &clock);
    check(
        &memory,
        &[("session/a/0", &text), ("session/a/1", &text), ("session/a/2", &text)],
    )
    .await;
}

#[tokio::test]
async fn what_a_namespace_cannot_hold_is_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let memory = open(folder.path(), &clock);
    put(&memory, &[("session/a/x", "1")]).await;
    let large = "x".repeat(100 << 20);
    let refused = memory
        .put(&me(), vec![note("session/b/y", "2"), note("session/a/z", &large)])
        .await;
    assert!(matches!(refused, Err(WorkingMemoryError::TooLarge { namespace, .. }) if namespace == "session/a"));
    let many = (0..1001).map(|at| note(&format!("session/b/{at}"), "1")).collect();
    let refused = memory.put(&me(), many).await;
    assert!(matches!(refused, Err(WorkingMemoryError::Full { namespace, limit: 1000 }) if namespace == "session/b"));
    check(&memory, &[("session/a/x", "1")]).await;
    drop(memory);
    check(&open(folder.path(), &clock), &[("session/a/x", "1")]).await;
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let secret = open(elsewhere.path(), &clock);
    put(&secret, &[("session/a/secret", "1")]).await;
    secret.flush().await.unwrap();
    drop(secret);
    write(elsewhere.path(), "changes.jsonl", "{\"deleted\":\"session/a/x\"}\n");
    for name in ["session.json", "changes.jsonl"] {
        symlink(elsewhere.path().join(name), folder.path().join(name)).unwrap();
    }
    symlink(elsewhere.path(), folder.path().join("@other")).unwrap();
    let before = files(elsewhere.path());
    let memory = open(folder.path(), &clock);
    check(&memory, &[]).await;
    put(
        &memory,
        &[("session/a/x", "1"), ("@other/a", "2"), ("../x", "3")]
            .map(|(key, value)| (key.trim_start_matches("../"), value)),
    )
    .await;
    memory
        .put(&"other".into(), vec![note("session/a/x", "1")])
        .await
        .unwrap_err();
    let flushed = memory.flush().await;
    check(&memory, &[("@other/a", "2"), ("session/a/x", "1"), ("x", "3")]).await;
    assert_eq!(files(elsewhere.path()), before);
    flushed.unwrap();
    drop(memory);
    check(
        &open(folder.path(), &clock),
        &[("@other/a", "2"), ("session/a/x", "1"), ("x", "3")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn puts_of_many_tasks_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let memory = Arc::new(open(folder.path(), &clock));
    let tasks = (0..8).map(|task| {
        let memory = memory.clone();
        tokio::spawn(async move {
            let text = "x".repeat(2_000);
            for at in 0..1000 {
                put(&memory, &[(&format!("session/{task}/{at}"), &text)]).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(texts(&memory).await.len(), 8000);
    drop(memory);
    let memory = open(folder.path(), &clock);
    assert_eq!((texts(&memory).await.len(), memory.damaged()), (8000, 0));
}

#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let memory = open(&folder, &ManualClock::default());
    kill::ready();
    for at in 0.. {
        let a = format!("session/{}/a", at % 5);
        let b = format!("patrol/{}/b", at % 5);
        let text = format!("{round}-{at}");
        put(&memory, &[(&a, &text), (&b, &text)]).await;
        kill::acknowledge(&format!("{} {text}", at % 5));
        if at % 64 == 63 {
            memory.flush().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    let mut total = 0;
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let numbers = |text: &str| {
            let (round, at) = text.split_once('-').unwrap();
            (round.parse::<u64>().unwrap(), at.parse::<u64>().unwrap())
        };
        for round in first..first + 20 {
            for line in kill::kill("working_memory::child", folder.path(), round) {
                let (number, text) = line.split_once(' ').unwrap();
                expected.insert(number.to_owned(), numbers(text));
                total += 1;
            }
        }
        let memory = open(folder.path(), &ManualClock::default());
        let texts = texts(&memory).await;
        for (number, acknowledged) in expected {
            let [a, b] = ["session/{}/a", "patrol/{}/b"].map(|key| &texts[&key.replace("{}", &number)]);
            assert_eq!(a, b, "half a put");
            assert!(numbers(a) >= acknowledged, "{a} instead of {acknowledged:?}");
        }
        let damaged = names(folder.path())
            .into_iter()
            .filter(|name| name.ends_with(".damaged"))
            .collect::<Vec<_>>();
        assert!(memory.damaged() <= 1 && damaged.len() <= 20, "{damaged:?}");
    }
    assert!(total > 400, "{total} puts in 200 processes");
}
