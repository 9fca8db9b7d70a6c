//! Feedback and uses of skills on disk.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rockbot_core::store::{FeedbackEntry, FeedbackSignal, TimelineStore};
use rockbot_core::testing::conformance;
use rockbot_core::{Clock, Principal, SystemClock, Timestamp};
use rockbot_memory::{FileFeedbackStore, FileSkillUsageStore};

use crate::support::files::{files, names, write};
use crate::support::kill;

fn me() -> Principal {
    Principal::default()
}

fn entry(session: &str, id: &str) -> FeedbackEntry {
    entry_at(Timestamp::from_millis(1_767_225_600_000), session, id)
}

fn entry_at(timestamp: Timestamp, session: &str, id: &str) -> FeedbackEntry {
    FeedbackEntry::new(id, session, FeedbackSignal::ToolFailure, "it failed", timestamp)
}

fn earlier(now: Timestamp, hours: u64) -> Timestamp {
    Timestamp::from_millis(now.as_millis() - hours * 60 * 60 * 1000)
}

async fn ids(store: &FileFeedbackStore) -> Vec<String> {
    let found = store
        .query_recent(&me(), Timestamp::default(), usize::MAX)
        .await
        .unwrap();
    found.into_iter().map(|entry| entry.id).collect()
}

#[tokio::test]
async fn keeps_the_promises_of_a_feedback_store() {
    let folders = Mutex::new(Vec::new());
    conformance::feedback_store(async || {
        let folder = tempfile::tempdir().unwrap();
        let store = FileFeedbackStore::open(folder.path()).unwrap();
        folders.lock().unwrap().push(folder);
        store
    })
    .await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_usage_store() {
    let folders = Mutex::new(Vec::new());
    conformance::skill_usage_store(async || {
        let folder = tempfile::tempdir().unwrap();
        let store = FileSkillUsageStore::open(folder.path()).unwrap();
        folders.lock().unwrap().push(folder);
        store
    })
    .await;
}

#[tokio::test]
async fn a_session_is_a_file_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    store.append(&me(), entry("s", "f1")).await.unwrap();
    store.append(&me(), entry("patrol/mail", "f2")).await.unwrap();
    store.append(&"Ann".into(), entry("../s", "f3")).await.unwrap();
    let line = |session: &str, id: &str| {
        let at = r#""timestamp":"2026-01-01T00:00:00.000Z""#;
        format!(r#"{{"id":"{id}","sessionId":"{session}","signalType":1,"summary":"it failed",{at}}}"#) + "\n"
    };
    let expected = [
        ("@%41nn/%2e.%2fs.jsonl", line("../s", "f3")),
        ("patrol%2fmail.jsonl", line("patrol/mail", "f2")),
        ("s.jsonl", line("s", "f1")),
    ];
    assert_eq!(
        files(folder.path()),
        expected.map(|(name, text)| (name.to_owned(), text)).into()
    );
    let refused = FileFeedbackStore::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("is in use: end the process"), "{refused}");
    drop(store);
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    assert_eq!(ids(&store).await, ["f2", "f1"]);
}

#[tokio::test]
async fn damage_costs_only_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: &str| serde_json::to_string(&entry("s", id)).unwrap();
    let overlong = "x".repeat(2 << 20);
    let text = format!(
        "\u{feff}{}\r\n\r\nno json\n{overlong}\n{{}}\n{}\n{{\"id\":",
        line("a"),
        line("b")
    );
    write(folder.path(), "S.jsonl", text);
    write(folder.path(), "s.jsonl", "{\"id\"");
    std::fs::create_dir_all(folder.path().join("d.jsonl/x")).unwrap();
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    for session in ["s", "d"] {
        store.append(&me(), entry(session, session)).await.unwrap();
    }
    assert_eq!(ids(&store).await, ["a", "b", "d", "s"]);
    assert_eq!(store.damaged(), 6);
    assert_eq!(names(folder.path()), ["S.jsonl", "d.jsonl", "s.jsonl"]);
    assert!(files(folder.path())["s.jsonl"].starts_with("{\"id\"\n{\"id\":\"s\""));
}

#[tokio::test]
async fn a_replaced_file_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    store.append(&me(), entry("s", "f1")).await.unwrap();
    std::fs::remove_file(folder.path().join("s.jsonl")).unwrap();
    store.append(&me(), entry("s", "f2")).await.unwrap();
    let line = serde_json::to_string(&entry("s", "f3")).unwrap();
    write(folder.path(), "s.jsonl", line);
    store.append(&me(), entry("s", "f4")).await.unwrap();
    assert_eq!(ids(&store).await, ["f3", "f4"]);
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write(
        elsewhere.path(),
        "s.jsonl",
        serde_json::to_string(&entry("s", "secret")).unwrap(),
    );
    symlink(elsewhere.path().join("s.jsonl"), folder.path().join("s.jsonl")).unwrap();
    symlink(elsewhere.path(), folder.path().join("@other")).unwrap();
    let before = files(elsewhere.path());
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    assert_eq!(ids(&store).await, [""; 0]);
    store.append(&me(), entry("s", "new")).await.unwrap();
    store.append(&"other".into(), entry("s", "new")).await.unwrap_err();
    assert_eq!(
        store
            .query_recent(&"other".into(), Timestamp::default(), 9)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        (ids(&store).await, files(elsewhere.path())),
        (vec!["new".to_owned()], before)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_of_many_tasks_to_many_sessions_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileFeedbackStore::open(folder.path()).unwrap());
    let tasks = (0..8).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for at in 0..500 {
                store
                    .append(&me(), entry(&format!("s{}", at % 100), &format!("{task}-{at}")))
                    .await
                    .unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let found: BTreeSet<_> = ids(&store).await.into_iter().collect();
    assert_eq!((found.len(), store.damaged()), (4000, 0));
    let newest = store.query_recent(&me(), Timestamp::default(), 10).await.unwrap();
    assert_eq!(newest.len(), 10);
}

/// Writes a file that was changed last at this time.
fn write_dated(folder: &Path, name: &str, text: &str, at: Timestamp) -> SystemTime {
    write(folder, name, text);
    let at = UNIX_EPOCH + Duration::from_millis(at.as_millis());
    let file = File::options().write(true).open(folder.join(name)).unwrap();
    file.set_modified(at).unwrap();
    at
}

#[tokio::test]
async fn old_entries_are_purged_and_edited_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (new, now) = (entry("s", "new"), entry("s", "new").timestamp);
    let long_ago = earlier(now, 48);
    let old = entry_at(long_ago, "s", "old");
    let [new, old] = [new, old].map(|entry| serde_json::to_string(&entry).unwrap());
    let overlong = format!("{old}\n{}\n", "x".repeat(2 << 20));
    let mixed = format!("{old}\r\n# mine\n{new}\n{{\"id\":");
    let newest = write_dated(folder.path(), "mixed.jsonl", &mixed, now);
    for (name, text) in [
        ("@%41nn/old.jsonl", &*old),
        ("notes.jsonl", &*format!("{old}\n# mine")),
        ("overlong.jsonl", &*overlong),
        ("old.txt", &*old),
        ("crashed.jsonl.tmp", &*old),
    ] {
        write_dated(folder.path(), name, text, long_ago);
    }
    // A person was here since.
    write_dated(folder.path(), "edited.jsonl", &old, now);
    let store = FileFeedbackStore::open(folder.path()).unwrap();
    assert_eq!(store.purge(now, usize::MAX).await.unwrap(), 3);
    let expected = [
        ("edited.jsonl", old.clone()),
        ("mixed.jsonl", format!("# mine\n{new}\n{{\"id\":\n")),
        ("notes.jsonl", "# mine\n".to_owned()),
        ("old.txt", old),
        ("overlong.jsonl", overlong),
    ];
    let expected = expected.map(|(name, text)| (name.to_owned(), text));
    assert_eq!(files(folder.path()), expected.into());
    let mixed = std::fs::metadata(folder.path().join("mixed.jsonl")).unwrap();
    assert_eq!(mixed.modified().unwrap(), newest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_append_is_lost_while_what_is_old_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileFeedbackStore::open(folder.path()).unwrap());
    let now = SystemClock.now();
    let tasks = (0..4).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for at in 0..200 {
                for (id, timestamp) in [("old".to_owned(), earlier(now, 2)), (format!("{task}-{at}"), now)] {
                    let entry = entry_at(timestamp, &format!("s{}", at % 3), &id);
                    store.append(&me(), entry).await.unwrap();
                }
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut gone = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        gone += store.purge(earlier(now, 1), usize::MAX).await.unwrap();
    }
    for task in tasks {
        task.await.unwrap();
    }
    gone += store.purge(earlier(now, 1), usize::MAX).await.unwrap();
    let found: BTreeSet<_> = ids(&store).await.into_iter().collect();
    assert_eq!((gone, found.len(), store.damaged()), (800, 800, 0));
    assert!(!found.contains("old"));
}

#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let store = FileFeedbackStore::open(folder).unwrap();
    kill::ready();
    let now = SystemClock.now();
    for at in 0.. {
        let id = format!("{round}-{at}");
        let entry = |id: &str, timestamp| entry_at(timestamp, &format!("s{}", at % 3), id);
        store.append(&me(), entry(&id, now)).await.unwrap();
        kill::acknowledge(&id);
        // What is old goes from the same files.
        store.append(&me(), entry("old", earlier(now, 2))).await.unwrap();
        store.purge(earlier(now, 1), usize::MAX).await.unwrap();
    }
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let kill = |round| kill::kill("feedback::child", folder.path(), round);
        let acknowledged: Vec<_> = (first..first + 20).flat_map(kill).collect();
        let store = FileFeedbackStore::open(folder.path()).unwrap();
        let found: BTreeSet<_> = ids(&store).await.into_iter().collect();
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(*id)).collect();
        assert!(lost.is_empty() && !acknowledged.is_empty(), "lost {lost:?}");
    }
}
