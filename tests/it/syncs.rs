//! Disks that do not confirm a write, and what killed writes leave: a store says what is true,
//! and forgets nothing.

use std::path::Path;
use std::time::Duration;

use rockbot_core::chat::{Provenance, Role};
use rockbot_core::store::{
    ConversationLog, ConversationMemory, ConversationTurn, LogEntry, LogOffset, LongTermMemory, MemoryEntry,
    StoreErrorKind,
};
use rockbot_core::testing::{FailingSyncs, ManualClock};
use rockbot_core::turn::{Acceptance, RunQuery, RunState, TurnJournal};
use rockbot_core::{Clock, Principal, SystemClock};
use rockbot_memory::file::FileMemory;
use rockbot_store::file::{ConversationOptions, FileConversationMemory};
use rockbot_store::file::{Durability, FileTurnJournal, JournalOptions};

use crate::support::files::{names, write};
use crate::support::journal::{record, run};

const LEASE: Duration = Duration::from_secs(60);

fn synced(folder: &Path) -> FileTurnJournal {
    let options = JournalOptions::default().with_durability(Durability::Synced);
    FileTurnJournal::open_with(folder, options.with_segment_bytes(1)).unwrap()
}

#[tokio::test]
async fn an_acceptance_that_cannot_be_synced_is_refused_until_it_is_durable() {
    let scratch = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = synced(scratch.path());
    let accepted = run("1", &clock);
    let segment = scratch.path().join("turns-00000001.jsonl");
    let failing = FailingSyncs::of(&segment);
    assert!(journal.accept(&accepted, "me", LEASE).await.is_err());
    drop(failing);
    // The segment must be written anew before a copy of the message may be acknowledged.
    let failing = FailingSyncs::of(scratch.path().join("turns-00000001.jsonl.tmp"));
    let error = journal.accept(&accepted, "me", LEASE).await.unwrap_err();
    assert!(
        error.to_string().contains("earlier records cannot be synced"),
        "{error}"
    );
    drop(failing);
    let again = journal.accept(&accepted, "me", LEASE).await.unwrap();
    assert!(matches!(again, Acceptance::Known(RunState::Unfinished)), "{again:?}");
    let claim = journal.claim(&accepted.run, "me", LEASE).await.unwrap().unwrap();
    journal
        .append(&claim, &[record(&clock, "1").with_critical(true)])
        .await
        .unwrap();
    drop(journal);
    let stored = synced(scratch.path()).read(&accepted.run).await.unwrap().unwrap();
    assert_eq!(stored.records.len(), 1);
}

#[tokio::test]
async fn a_segment_before_that_cannot_be_synced_fails_the_acceptance() {
    let scratch = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let journal = synced(scratch.path());
    journal.accept(&run("1", &clock), "me", LEASE).await.unwrap();
    let before = FailingSyncs::of(scratch.path().join("turns-00000001.jsonl"));
    let anew = FailingSyncs::of(scratch.path().join("turns-00000001.jsonl.tmp"));
    assert!(journal.accept(&run("2", &clock), "me", LEASE).await.is_err());
    drop((before, anew));
    // Nor is a new segment durable whose name is not.
    let names = FailingSyncs::of(scratch.path());
    assert!(journal.accept(&run("3", &clock), "me", LEASE).await.is_err());
    drop(names);
    journal.accept(&run("4", &clock), "me", LEASE).await.unwrap();
    drop(journal);
    let known = synced(scratch.path()).unfinished(&RunQuery::all()).await.unwrap();
    assert!(
        known.contains(&run("1", &clock).run) && known.contains(&run("4", &clock).run),
        "{known:?}"
    );
}

#[tokio::test]
async fn an_append_that_could_not_be_synced_is_written_again() {
    let scratch = tempfile::tempdir().unwrap();
    let options = ConversationOptions::default().with_durability(Durability::Synced);
    let memory = FileConversationMemory::open_with(scratch.path(), options.clone()).unwrap();
    let me = Principal::default();
    let session = "s".into();
    let entry = || vec![ConversationTurn::new(Role::User, "hello", SystemClock.now(), "1")];
    let log = scratch.path().join("s.jsonl");
    let failing = FailingSyncs::of(&log);
    let error = memory.append(&me, &session, entry()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotDurable, "{error}");
    assert_eq!(memory.recent(&me, &session, 9).await.unwrap().len(), 1, "visible");
    let again = memory.append(&me, &session, entry()).await.unwrap_err();
    assert_eq!(again.kind(), StoreErrorKind::NotDurable, "a copy is not durable either");
    drop(failing);
    for _ in 0..2 {
        memory.append(&me, &session, entry()).await.unwrap();
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 3);
    drop(memory);
    let memory = FileConversationMemory::open_with(scratch.path(), options).unwrap();
    assert_eq!(memory.recent(&me, &session, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_visible_and_not_durable_is_an_error_and_in_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let memory = FileMemory::open(scratch.path()).unwrap();
    let me = Principal::default();
    let fact = MemoryEntry::new("tea", "likes tea", SystemClock.now(), Provenance::USER);
    let failing = ["memory", "conversation-log"].map(|name| FailingSyncs::of(scratch.path().join(name)));
    let error = memory.long_term.save(&me, fact).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotDurable, "{error}");
    assert!(names(&scratch.path().join("memory")).contains(&"tea.json".to_owned()));
    assert!(memory.long_term.get(&me, &"tea".into()).await.unwrap().is_some());

    let log = &memory.conversation_log;
    let entry = |content: &str| LogEntry::new("s", Role::User, content, SystemClock.now());
    log.append(&me, vec![entry("one"), entry("two")]).await.unwrap();
    let error = log.commit(&me, "dreams", LogOffset(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotDurable, "{error}");
    let batch = log.read(&me, "dreams", 9).await.unwrap();
    assert_eq!(batch.entries.len(), 1, "the file has the offset, and so has the reader");
    drop(failing);
}

#[tokio::test]
async fn stores_remove_what_killed_writes_left_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let left = [
        "rules.md.tmp",
        "@ann/timezone.tmp",
        "memory/@ann/a.json.tmp",
        "working-memory/_log.jsonl.tmp",
        "skills/b.json.tmp",
        "feedback/s.jsonl.tmp",
        "conversation-log/readers.json.tmp",
        "conversations/s.json.tmp",
        "turns/turns-00000001.jsonl.tmp",
    ];
    let kept = [
        "notes.json.tmp",
        "memory/letter.tmp",
        "turns/mine.jsonl.tmp",
        "rules/draft.txt.tmp",
    ];
    left.iter()
        .chain(&kept)
        .for_each(|name| write(scratch.path(), name, "half"));
    let _memory = FileMemory::open(scratch.path()).unwrap();
    let _conversations = FileConversationMemory::open(scratch.path().join("conversations")).unwrap();
    let _journal = FileTurnJournal::open(scratch.path().join("turns")).unwrap();
    let mut tmp = names(scratch.path());
    tmp.retain(|name| name.ends_with(".tmp"));
    let mut kept = kept.map(ToOwned::to_owned);
    kept.sort();
    assert_eq!(tmp, kept);
}
