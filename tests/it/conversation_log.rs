//! The conversation log on disk.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationLog, LogBatch, LogEntry, LogOffset};
use rockbot_core::testing::conformance;
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{Principal, Timestamp};
use rockbot_memory::{ConversationLogOptions, FileConversationLog};

use crate::support::files::{files, names, write};
use crate::support::kill;

fn me() -> Principal {
    Principal::default()
}

fn open(folder: &Path) -> FileConversationLog {
    FileConversationLog::open(folder).unwrap()
}

fn said(content: &str) -> LogEntry {
    LogEntry::new("s", Role::User, content, Timestamp::from_millis(1_767_225_600_000))
}

async fn append(log: &FileConversationLog, contents: &[&str]) {
    log.append(&me(), contents.iter().map(|content| said(content)).collect())
        .await
        .unwrap();
}

async fn check(log: &FileConversationLog, reader: &str, expected: &[&str]) -> LogBatch {
    let batch = log.read(&me(), reader, usize::MAX).await.unwrap();
    let contents: Vec<_> = batch.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(contents, expected, "what `{reader}` reads");
    batch
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_log() {
    for max_bytes in [4096, 64 << 20] {
        let folders = Mutex::new(Vec::new());
        conformance::conversation_log(async || {
            let folder = tempfile::tempdir().unwrap();
            let options = ConversationLogOptions::default().with_max_bytes(max_bytes);
            let log = FileConversationLog::open_with(folder.path(), options).unwrap();
            folders.lock().unwrap().push(folder);
            log
        })
        .await;
    }
}

const LINE: &str = r#"{"sessionId":"s","role":"user","content":"c","timestamp":"2026-01-01T00:00:00.000Z"}"#;

#[tokio::test]
async fn a_log_is_lines_and_positions() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    check(&log, "dream", &[]).await;
    assert_eq!(names(folder.path()), [""; 0], "reading makes no file");
    append(&log, &["a", "b"]).await;
    append(&log, &["c"]).await;
    log.commit(&me(), "dream", LogOffset(2)).await.unwrap();
    log.trim(&me(), LogOffset(2)).await.unwrap();
    let expected = [
        ("readers.json", "{\n  \"dream\": 2\n}".to_owned()),
        ("turns.jsonl", format!("{{\"start\":2}}\n{LINE}\n")),
    ];
    assert_eq!(
        files(folder.path()),
        expected.map(|(name, text)| (name.to_owned(), text)).into()
    );
    let refused = FileConversationLog::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("is in use: end the process"), "{refused}");
    drop(log);
    let log = open(folder.path());
    append(&log, &["d"]).await;
    check(&log, "dream", &["c", "d"]).await;
    assert_eq!(check(&log, "late", &["c", "d"]).await.next, LogOffset(4));
}

#[tokio::test]
async fn a_line_has_the_label_and_the_trust_that_are_known() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "turns.jsonl", format!("{LINE}\n"));
    let log = open(folder.path());
    let old = said("c");
    assert_eq!((&old.label, old.trust), (&Label::UNKNOWN, Trust::Untrusted));
    let new = said("c")
        .with_label(Label::untrusted("tool:mail, tool:web"))
        .with_trust(Trust::User);
    log.append(&me(), vec![new.clone()]).await.unwrap();
    let batch = log.read(&me(), "dream", usize::MAX).await.unwrap();
    assert_eq!(batch, LogBatch::new(vec![old, new], LogOffset(2)));
    let known = r#","label":{"trust":"untrusted","sources":["tool:mail","tool:web"]},"trust":"user"}"#;
    let labelled = LINE.replace('}', known);
    assert_eq!(files(folder.path())["turns.jsonl"], format!("{LINE}\n{labelled}\n"));
}

#[tokio::test]
async fn the_log_of_the_original_opens_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = LINE.replace("00.000Z", "00.1234567+00:00").replace("\"c\"", "\"one\"");
    write(
        folder.path(),
        "turns.jsonl",
        format!("\u{feff}{theirs}\r\n\r\n{LINE}\r\nno json\n{{\"half"),
    );
    let log = open(folder.path());
    let batch = check(&log, "dream", &["one", "c"]).await;
    log.commit(&me(), "dream", batch.next).await.unwrap();
    append(&log, &["new"]).await;
    check(&log, "dream", &["new"]).await;
    check(&log, "late", &["one", "c", "new"]).await;
}

#[tokio::test]
async fn a_reader_of_another_log_reads_this_one_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    append(&log, &["a", "b", "c"]).await;
    let batch = check(&log, "dream", &["a", "b", "c"]).await;
    log.commit(&me(), "dream", batch.next).await.unwrap();
    std::fs::remove_file(folder.path().join("turns.jsonl")).unwrap();
    append(&log, &["d", "e", "f", "g"]).await;
    check(&log, "dream", &["d", "e", "f", "g"]).await;
    write(folder.path(), "readers.json", "{");
    drop(log);
    check(&open(folder.path()), "dream", &["d", "e", "f", "g"]).await;
    assert_eq!(names(folder.path()), ["readers.json.damaged", "turns.jsonl"]);
}

#[tokio::test]
async fn a_full_log_forgets_its_older_half() {
    let folder = tempfile::tempdir().unwrap();
    let options = ConversationLogOptions::default().with_max_bytes(10_000);
    let log = FileConversationLog::open_with(folder.path(), options).unwrap();
    let path = folder.path().join("turns.jsonl");
    let content = |at: usize| format!("{at:04}");
    for at in 0..1000 {
        append(&log, &[&content(at)]).await;
        assert!(std::fs::metadata(&path).unwrap().len() <= 10_000);
        if at == 500 {
            log.commit(&me(), "dream", LogOffset(at as u64)).await.unwrap();
        }
    }
    let batch = log.read(&me(), "dream", usize::MAX).await.unwrap();
    let read = batch.entries;
    let next = batch.next;
    assert!(read.len() > 50 && next == LogOffset(1000), "{} entries", read.len());
    let expected: Vec<_> = (1000 - read.len()..1000).map(content).collect();
    assert_eq!(
        read.into_iter().map(|entry| entry.content).collect::<Vec<_>>(),
        expected,
        "the newest are there"
    );
    // In small pieces it reads the same.
    let mut pieces = Vec::new();
    loop {
        let batch = log.read(&me(), "pieces", 7).await.unwrap();
        if batch.entries.is_empty() {
            break;
        }
        log.commit(&me(), "pieces", batch.next).await.unwrap();
        pieces.extend(batch.entries.into_iter().map(|entry| entry.content));
    }
    assert_eq!(pieces, expected);
    let refused = log
        .append(&me(), vec![said(&"x".repeat(3000))])
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "the conversation log takes at most 2500 bytes at once; shorten it: 3084 bytes"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_is_said_during_a_read_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(open(folder.path()));
    let writers = (0..4).map(|task| {
        let log = log.clone();
        tokio::spawn(async move {
            for at in 0..250 {
                append(&log, &[&format!("{task}-{at}")]).await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut read = Vec::new();
    while read.len() < 1000 {
        let batch = log.read(&me(), "dream", 100).await.unwrap();
        read.extend(batch.entries.into_iter().map(|entry| entry.content));
        log.commit(&me(), "dream", batch.next).await.unwrap();
        log.trim(&me(), batch.next).await.unwrap();
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    read.sort_unstable();
    read.dedup();
    assert_eq!(read.len(), 1000);
    check(&log, "dream", &[]).await;
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "turns.jsonl", LINE);
    write(elsewhere.path(), "readers.json", r#"{"dream": 1}"#);
    for name in ["turns.jsonl", "readers.json"] {
        symlink(elsewhere.path().join(name), folder.path().join(name)).unwrap();
    }
    symlink(elsewhere.path(), folder.path().join("@other")).unwrap();
    let before = files(elsewhere.path());
    let log = open(folder.path());
    check(&log, "dream", &[]).await;
    append(&log, &["new"]).await;
    check(&log, "dream", &["new"]).await;
    log.append(&"other".into(), vec![said("new")]).await.unwrap_err();
    assert_eq!(files(elsewhere.path()), before);
}

#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let log = open(&folder);
    kill::ready();
    for at in 0.. {
        let content = format!("{round}-{at}");
        append(&log, &[&content]).await;
        kill::acknowledge(&content);
        if at % 16 == 15 {
            let batch = log.read(&me(), "dream", 8).await.unwrap();
            batch
                .entries
                .iter()
                .for_each(|entry| kill::acknowledge(&format!("read {}", entry.content)));
            log.commit(&me(), "dream", batch.next).await.unwrap();
            log.trim(&me(), batch.next).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    let mut total = 0;
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Vec::new();
        let mut read = Vec::new();
        for round in first..first + 20 {
            for line in kill::kill("conversation_log::child", folder.path(), round) {
                match line.strip_prefix("read ") {
                    Some(content) => read.push(content.to_owned()),
                    None => written.push(line),
                }
            }
        }
        let left = open(folder.path())
            .read(&me(), "dream", usize::MAX)
            .await
            .unwrap()
            .entries;
        read.extend(left.into_iter().map(|entry| entry.content));
        let lost: Vec<_> = written.iter().filter(|content| !read.contains(content)).collect();
        assert!(lost.is_empty(), "never read: {lost:?}");
        let left: Vec<_> = names(folder.path())
            .into_iter()
            .filter(|name| name.ends_with(".damaged"))
            .collect();
        assert_eq!(left, [""; 0]);
        total += written.len();
    }
    assert!(total > 400, "{total} turns in 200 processes");
}
