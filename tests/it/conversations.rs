//! Conversation memory on disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::testing::{ManualClock, conformance};
use rockbot_core::{Clock, Principal, SessionId, Timestamp};
use rockbot_store::file::Durability;
use rockbot_store::file::{ConversationOptions, FileConversationMemory};
use serde_json::{Value, json};

use crate::support::kill;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn said(turn: &str) -> ConversationTurn {
    let content = format!("said in {turn}");
    ConversationTurn::new(Role::User, content, ManualClock::default().now(), turn)
}

fn saying(turn: &str, text: &str) -> ConversationTurn {
    ConversationTurn::new(Role::User, text, ManualClock::default().now(), turn)
}

fn options() -> ConversationOptions {
    ConversationOptions::default().with_clock(Arc::new(ManualClock::default()))
}

fn open(folder: &Path) -> FileConversationMemory {
    FileConversationMemory::open_with(folder, options()).unwrap()
}

fn me() -> Principal {
    Principal::default()
}

async fn append(memory: &FileConversationMemory, session: &str, turns: &[&str]) {
    for turn in turns {
        memory.append(&me(), &session.into(), vec![said(turn)]).await.unwrap();
    }
}

async fn recent(memory: &FileConversationMemory, session: &str) -> Vec<String> {
    let recent = memory.recent(&me(), &session.into(), usize::MAX).await.unwrap();
    recent.into_iter().map(|entry| entry.turn.to_string()).collect()
}

/// The files in a folder and what is in them, as text.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read_to_string(entry.path()).unwrap())
    };
    files.map(file).filter(|(name, _)| name != "lock").collect()
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_keys().collect()
}

/// A document as the original writes it.
fn theirs(texts: &[&str]) -> String {
    let turn = |text| json!({"role": "assistant", "content": text, "timestamp": "2026-01-01T00:00:00.1234567+00:00"});
    serde_json::to_string_pretty(&texts.iter().map(turn).collect::<Vec<_>>()).unwrap()
}

#[tokio::test]
async fn keeps_the_promises_of_a_conversation_memory() {
    for (durability, max_cached_sessions) in [(Durability::Process, 10_000), (Durability::Synced, 2)] {
        let folders = Mutex::new(Vec::new());
        conformance::conversation_memory(async || {
            let folder = tempfile::tempdir().unwrap();
            let options = options()
                .with_durability(durability)
                .with_max_cached_sessions(max_cached_sessions);
            let memory = FileConversationMemory::open_with(folder.path(), options).unwrap();
            folders.lock().unwrap().push(folder);
            memory
        })
        .await;
    }
}

#[tokio::test]
async fn a_session_is_a_log_until_it_is_flushed_and_then_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    append(&memory, "s", &["a", "b"]).await;
    let line = |turn: &str| {
        let at = r#""timestamp":"2026-01-01T00:00:00.000Z""#;
        format!(r#"{{"role":"user","content":"said in {turn}",{at},"turn":"{turn}"}}"#)
    };
    let log = format!("[{}]\n[{}]\n", line("a"), line("b"));
    assert_eq!(files(folder.path()), BTreeMap::from([("s.jsonl".into(), log)]));
    memory.flush().await.unwrap();
    let document = format!("[{},{}]", line("a"), line("b"));
    assert_eq!(files(folder.path()), BTreeMap::from([("s.json".into(), document)]));
}

#[tokio::test]
async fn everything_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..4 {
        let memory = open(folder.path());
        assert_eq!(recent(&memory, "s").await, expected);
        let turns = [format!("{round}a"), format!("{round}b")];
        append(&memory, "s", &[&turns[0], &turns[1]]).await;
        memory
            .append(&"other".into(), &"s".into(), vec![said("theirs")])
            .await
            .unwrap();
        expected.extend(turns);
        if round % 2 == 0 {
            memory.flush().await.unwrap();
        }
    }
    let memory = open(folder.path());
    assert_eq!(memory.sessions(&me()).await.unwrap(), ["s"]);
    assert_eq!(memory.sessions(&"other".into()).await.unwrap(), ["s"]);
    assert_eq!(
        memory.recent(&"other".into(), &"s".into(), 9).await.unwrap(),
        [said("theirs")]
    );
    assert_eq!(memory.damaged(), 0);
}

#[tokio::test]
async fn a_second_one_is_refused_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    let refused = FileConversationMemory::open(folder.path()).unwrap_err().to_string();
    let expected = format!(
        "conversations cannot be opened: the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder",
        folder.path().display()
    );
    assert_eq!(refused, expected);
    drop(memory);
    open(folder.path());
}

#[tokio::test]
async fn the_window_moves_in_the_same_way_on_disk() {
    for window in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let options = options().with_window(window);
            FileConversationMemory::open_with(folder.path(), options).unwrap()
        };
        let mut memory = open();
        let mut expected = Vec::new();
        // A turn that has left the window may come again.
        for (at, turn) in ["a", "b", "c", "a", "d", "b", "b", "a"].into_iter().enumerate() {
            append(&memory, "s", &[turn]).await;
            if !expected.contains(&turn.to_owned()) {
                expected.push(turn.to_owned());
            }
            expected.drain(..expected.len().saturating_sub(window));
            assert_eq!(recent(&memory, "s").await, expected);
            if at % 3 == 2 {
                memory.flush().await.unwrap();
            }
            drop(memory);
            memory = open();
            assert_eq!(recent(&memory, "s").await, expected);
        }
    }
}

#[tokio::test]
async fn a_crash_between_document_and_log_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = || options().with_window(2);
    let memory = FileConversationMemory::open_with(folder.path(), options()).unwrap();
    append(&memory, "s", &["a", "b", "c"]).await;
    let log = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
    memory.flush().await.unwrap();
    drop(memory);
    let document = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
    let digest = rockbot_core::Digest::of([&document]);
    let log = format!(
        "{log}{{\"folded\":\"{digest}\"}}\n[{}]\n",
        serde_json::to_string(&entry("d")).unwrap()
    );
    std::fs::write(folder.path().join("s.jsonl"), &log).unwrap();
    let check = async |expected: &[&str]| {
        let memory = FileConversationMemory::open_with(folder.path(), options()).unwrap();
        assert_eq!(recent(&memory, "s").await, expected);
        assert_eq!(memory.damaged(), 0);
    };
    check(&["c", "d"]).await;
    // Before the document was replaced, the lines are all there is.
    std::fs::remove_file(folder.path().join("s.json")).unwrap();
    check(&["c", "d"]).await;
}

fn entry(turn: &str) -> Value {
    json!({"role": "user", "content": format!("said in {turn}"), "timestamp": "2026-01-01T00:00:00.000Z", "turn": turn})
}

#[tokio::test]
async fn documents_of_the_original_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for name in [
        "plain.json",
        "Upper.json",
        "team/Alpha/1.json",
        "both.json",
        "Both.json",
        "%42oth.json",
    ] {
        write(name, &theirs(&["one", name]));
    }
    let memory = open(folder.path());
    let ids = ["Both", "Upper", "both", "plain", "team/Alpha/1"];
    assert_eq!(memory.sessions(&me()).await.unwrap(), ids);
    let found = memory.recent(&me(), &"team/Alpha/1".into(), 9).await.unwrap();
    let expected = [("one", "imported-0"), ("team/Alpha/1.json", "imported-1")].map(|(content, turn)| {
        let at = Timestamp::from_millis(1_767_225_600_123);
        ConversationTurn::new(Role::Assistant, content, at, turn)
    });
    assert_eq!(found, expected);
    let both = memory.recent(&me(), &"Both".into(), 1).await.unwrap();
    assert_eq!(both[0].content, "%42oth.json", "ours wins");

    append(&memory, "team/Alpha/1", &["new"]).await;
    memory.flush().await.unwrap();
    let after = std::fs::read_to_string(folder.path().join("team/Alpha/1.json")).unwrap();
    assert_eq!(after, theirs(&["one", "team/Alpha/1.json"]), "theirs stays as it is");
    drop(memory);
    let memory = open(folder.path());
    assert_eq!(
        recent(&memory, "team/Alpha/1").await,
        ["imported-0", "imported-1", "new"]
    );
    assert_eq!(memory.sessions(&me()).await.unwrap(), ids);

    for id in ids {
        memory.clear(&me(), &id.into()).await.unwrap();
    }
    assert_eq!(memory.sessions(&me()).await.unwrap(), [] as [SessionId; 0]);
    drop(memory);
    assert_eq!(open(folder.path()).sessions(&me()).await.unwrap(), [] as [SessionId; 0]);
}

#[tokio::test]
async fn unknown_members_are_kept_and_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut known = entry("a");
    known["$type"] = json!("System.Diagnostics.Process");
    known["lc"] = json!(1);
    known["version"] = json!({"major": 9});
    std::fs::write(folder.path().join("s.json"), json!([known]).to_string()).unwrap();
    let memory = open(folder.path());
    append(&memory, "s", &["b"]).await;
    memory.flush().await.unwrap();
    let document = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&document).unwrap(),
        json!([known, entry("b")])
    );
}

#[tokio::test]
async fn an_idle_session_is_on_disk_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let options = || {
        ConversationOptions::default()
            .with_max_cached_sessions(4)
            .with_clock(Arc::new(clock.clone()))
    };
    let memory = FileConversationMemory::open_with(folder.path(), options()).unwrap();
    let ids: Vec<_> = (0..40).map(|at| format!("s{at}")).collect();
    for turn in ["a", "b"] {
        for id in &ids {
            append(&memory, id, &[turn]).await;
            clock.advance(Duration::from_secs(1));
        }
    }
    clock.advance(HOUR * 2);
    append(&memory, "s7", &["c"]).await;
    assert_eq!(recent(&memory, "s7").await, ["a", "b", "c"]);
    memory.flush().await.unwrap();
    drop(memory);
    let memory = FileConversationMemory::open_with(folder.path(), options()).unwrap();
    for id in ids.iter().filter(|id| *id != "s7") {
        assert_eq!(recent(&memory, id).await, ["a", "b"], "{id}");
    }
}

#[tokio::test]
async fn a_long_log_is_folded_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    let text = "x".repeat(100_000);
    for at in 0..200 {
        let entry = saying(&at.to_string(), &text);
        memory.append(&me(), &"s".into(), vec![entry]).await.unwrap();
    }
    memory.flush().await.unwrap();
    assert_eq!(names(folder.path()), ["s.json"]);
    let expected: Vec<_> = (150..200).map(|at| at.to_string()).collect();
    assert_eq!(recent(&memory, "s").await, expected);
    drop(memory);
    assert_eq!(recent(&open(folder.path()), "s").await, expected);
}

#[tokio::test]
async fn a_session_keeps_no_more_text_than_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path());
    let large = |turn: &str, len: usize| saying(turn, &"\u{1}".repeat(len));
    let refused = memory
        .append(&me(), &"s".into(), vec![large("a", (8 << 20) + 1)])
        .await
        .unwrap_err();
    let expected = "a conversation takes no more than 8 MiB of text at once; shorten it: 8388609 bytes";
    assert_eq!(refused.to_string(), expected);
    for turn in ["b", "c", "d"] {
        memory
            .append(&me(), &"s".into(), vec![large(turn, 3 << 20)])
            .await
            .unwrap();
    }
    memory.flush().await.unwrap();
    drop(memory);
    let memory = open(folder.path());
    assert_eq!(
        (recent(&memory, "s").await, memory.damaged()),
        (vec!["c".into(), "d".into()], 0)
    );
}

#[tokio::test]
async fn damaged_documents_are_quarantined_and_the_others_load() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    let half = theirs(&["one", "two"]);
    write("empty.json", b"");
    write("half.json", &half.as_bytes()[..half.len() / 2]);
    write("object.json", br#"{"version": 2, "turns": []}"#);
    write("number.json", b"7");
    write("wrong.json", br#"[{"role": "user", "content": 7}]"#);
    write("bytes.json", b"[\"\xff\xfe\"]");
    write("whole.json", theirs(&["one"]).as_bytes());
    write("marked.json", format!("\u{feff}{}\r\n", theirs(&["one"])).as_bytes());
    let huge = std::fs::File::create(folder.path().join("huge.json")).unwrap();
    huge.set_len(500 << 20).unwrap();
    std::fs::create_dir(folder.path().join("folder.json")).unwrap();
    std::fs::create_dir(folder.path().join("log.jsonl")).unwrap();

    let memory = open(folder.path());
    for id in ["whole", "marked"] {
        assert_eq!(recent(&memory, id).await, ["imported-0"], "{id}");
    }
    let damaged = ["empty", "half", "object", "number", "wrong", "bytes", "huge", "folder"];
    for id in damaged {
        append(&memory, id, &["new"]).await;
        assert_eq!(recent(&memory, id).await, ["new"], "{id}");
    }
    append(&memory, "log", &["new"]).await;
    memory.flush().await.unwrap();
    assert_eq!(memory.damaged(), 9);
    for id in damaged {
        assert!(folder.path().join(format!("{id}.json.damaged")).exists(), "{id}");
    }
    let kept = std::fs::read_to_string(folder.path().join("half.json.damaged")).unwrap();
    assert_eq!(kept, half[..half.len() / 2], "nothing of it is lost");
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_skipped_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = format!(
        "\u{feff}[{}]\r\n\r\nno json\n{{}}\n[{}]\n[{{\"role\":",
        entry("a"),
        entry("b")
    );
    std::fs::write(folder.path().join("s.jsonl"), &log).unwrap();
    let memory = open(folder.path());
    append(&memory, "s", &["c"]).await;
    assert_eq!(
        (recent(&memory, "s").await, memory.damaged()),
        (vec!["a".into(), "b".into(), "c".into()], 3)
    );
    memory.flush().await.unwrap();
    assert_eq!(names(folder.path()), ["s.json", "s.jsonl.damaged"]);
    assert!(files(folder.path())["s.jsonl.damaged"].starts_with(&log));
    drop(memory);
    let memory = open(folder.path());
    assert_eq!(
        (recent(&memory, "s").await, memory.damaged()),
        (vec!["a".into(), "b".into(), "c".into()], 0)
    );
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.json");
    std::fs::write(&secret, theirs(&["secret"])).unwrap();
    for name in ["a.json", "b.jsonl", "Theirs.json"] {
        symlink(&secret, folder.path().join(name)).unwrap();
    }
    symlink(elsewhere.path(), folder.path().join("@other")).unwrap();
    let memory = open(folder.path());
    for id in ["a", "b", "Theirs"] {
        append(&memory, id, &["new"]).await;
        assert_eq!(recent(&memory, id).await, ["new"], "{id}");
    }
    let other = Principal::from("other");
    assert_eq!(memory.sessions(&other).await.unwrap(), [] as [SessionId; 0]);
    memory
        .append(&other, &"secret".into(), vec![said("new")])
        .await
        .unwrap_err();
    memory.clear(&me(), &"a".into()).await.unwrap();
    memory.flush().await.unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), theirs(&["secret"]));
    assert_eq!(names(elsewhere.path()), ["secret.json"]);
}

#[tokio::test]
async fn errors_say_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let memory = open(&path);
    let refused = memory
        .append(&me(), &"x".repeat(1025).into(), vec![said("a")])
        .await
        .unwrap_err();
    let expected =
        "the session has no file: an id of 1025 bytes is too long to name a file: use one of at most 1024 bytes";
    assert_eq!(refused.to_string(), expected);
    std::fs::write(path.join("@other"), "").unwrap();
    let refused = memory
        .append(&"other".into(), &"s".into(), vec![said("a")])
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("@other` is no plain file or folder"),
        "{refused}"
    );
    std::fs::remove_dir_all(&path).unwrap();
    let refused = memory.append(&me(), &"s".into(), vec![said("a")]).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("the log of a conversation cannot be opened: "),
        "{refused}"
    );
    std::fs::write(&path, "").unwrap();
    let refused = FileConversationMemory::open(folder.path().join("data")).unwrap_err();
    assert!(
        refused.to_string().contains("cannot be made; check the folder"),
        "{refused}"
    );
}

async fn eight_tasks_append(sessions: usize) {
    let folder = tempfile::tempdir().unwrap();
    let options = || options().with_window(8000).with_max_cached_sessions(50);
    let memory = Arc::new(FileConversationMemory::open_with(folder.path(), options()).unwrap());
    let tasks = (0..8).map(|task| {
        let memory = memory.clone();
        tokio::spawn(async move {
            for at in 0..1000 {
                let session = format!("s{}", at % sessions);
                append(&memory, &session, &[&format!("{task}-{at:04}")]).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let check = async |memory: &FileConversationMemory| {
        for session in 0..sessions {
            let turns = recent(memory, &format!("s{session}")).await;
            assert_eq!(turns.len(), 8000 / sessions);
            for task in 0..8 {
                let own: Vec<_> = turns
                    .iter()
                    .filter(|turn| turn.starts_with(&format!("{task}-")))
                    .collect();
                assert!(own.is_sorted() && own.len() == 1000 / sessions, "{own:?}");
            }
        }
        assert_eq!(memory.damaged(), 0);
    };
    check(&memory).await;
    drop(memory);
    check(&FileConversationMemory::open_with(folder.path(), options()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_of_many_tasks_to_one_session_are_all_there() {
    eight_tasks_append(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_of_many_tasks_to_many_sessions_are_all_there() {
    eight_tasks_append(100).await;
}

const SESSIONS: usize = 3;

/// Appends until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let options = options().with_window(1_000_000);
    let (folder, round) = kill::begin();
    let memory = FileConversationMemory::open_with(folder, options).unwrap();
    kill::ready();
    for at in 0.. {
        let session = format!("s{}", at % SESSIONS);
        let turn = format!("{round}-{at}");
        let pair = vec![said(&turn), said(&turn)];
        memory.append(&me(), &session.as_str().into(), pair).await.unwrap();
        kill::acknowledge(&format!("{session} {turn}"));
        if at % 64 == 63 {
            memory.flush().await.unwrap();
        }
    }
}

/// Kills one process after the other in the same folder, and checks what they left together.
async fn kill_ten(first_round: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for round in first_round..first_round + 10 {
        for acknowledged in kill::kill("conversations::child", folder.path(), round) {
            let (session, turn) = acknowledged.split_once(' ').unwrap();
            expected.entry(session.to_owned()).or_default().push(turn.to_owned());
        }
    }
    let options = options().with_window(1_000_000);
    let memory = FileConversationMemory::open_with(folder.path(), options).unwrap();
    for (session, acknowledged) in &expected {
        let turns = recent(&memory, session).await;
        let whole = turns.chunks(2).all(|pair| pair.len() == 2 && pair[0] == pair[1]);
        assert!(whole, "half an append in {session}: {turns:?}");
        let mut found = turns.iter().step_by(2);
        for turn in acknowledged {
            assert!(
                found.any(|known| known == turn),
                "{turn} of {session} is lost, or not in its place"
            );
        }
    }
    expected.values().map(Vec::len).sum()
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    let mut acknowledged = 0;
    for first_round in (0..200).step_by(10) {
        acknowledged += kill_ten(first_round).await;
    }
    assert!(acknowledged > 400, "{acknowledged} appends in 200 processes");
}
