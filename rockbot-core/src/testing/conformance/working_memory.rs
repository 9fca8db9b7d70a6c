//! The conformance suite of [`WorkingMemory`].

use std::sync::Arc;
use std::time::Duration;

use crate::chat::Provenance;
use crate::store::{DEFAULT_TTL, StorePath, WorkingMemory, WorkingMemoryError, WorkingNote};
use crate::testing::ManualClock;
use crate::{Clock, Principal};

/// Checks that the values that `make` creates keep the contract of [`WorkingMemory`]. `make` gets
/// the clock that entries expire by, and the maximum number of entries of a namespace.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn working_memory<M: WorkingMemory>(make: impl AsyncFn(Arc<dyn Clock>, usize) -> M) {
    let clock = ManualClock::default();
    let memory = async |limit| make(Arc::new(clock.clone()), limit).await;
    keeps_an_entry_whole(&memory(50).await, &clock).await;
    forgets_an_entry_when_its_time_is_over(&memory(50).await, &clock).await;
    lists_by_whole_segments(&memory(50).await).await;
    refuses_what_a_namespace_cannot_hold(&memory(3).await, &clock).await;
    keeps_all_notes_or_none(&memory(3).await).await;
    finds_entries_by_words(&memory(50).await).await;
    keeps_principals_apart(&memory(50).await).await;
}

async fn keeps_an_entry_whole(memory: &impl WorkingMemory, clock: &ManualClock) {
    let me = Principal::default();
    check(memory, &me, "session/a/x", None).await;
    put(memory, &me, &[("session/a/x", "old")]).await.expect(WRITTEN);
    let mut whole = note("session/a/x", "new").with_ttl(Duration::from_secs(60));
    whole.category = Some(path("web/pages"));
    whole.tags = vec!["tag".to_owned()];
    memory.put(&me, vec![whole.clone()]).await.expect(WRITTEN);
    let entry = memory.get(&me, &path("session/a/x")).await.expect(READ);
    assert_eq!(
        entry.as_deref(),
        Some(&whole.stored_at(clock.now())),
        "an entry comes back whole"
    );
    assert!(delete(memory, &me, "session/a/x").await, "there is an entry to delete");
    assert!(!delete(memory, &me, "session/a/x").await, "there is none any more");
}

async fn forgets_an_entry_when_its_time_is_over(memory: &impl WorkingMemory, clock: &ManualClock) {
    let me = Principal::default();
    put(memory, &me, &[("session/a/x", "1")]).await.expect(WRITTEN);
    clock.advance(DEFAULT_TTL - Duration::from_millis(1));
    check(memory, &me, "session/a/x", Some("1")).await;
    clock.advance(Duration::from_millis(1));
    check(memory, &me, "session/a/x", None).await;
    check_list(memory, &me, None, &[]).await;
    assert!(
        !delete(memory, &me, "session/a/x").await,
        "an expired entry is not there"
    );
}

async fn lists_by_whole_segments(memory: &impl WorkingMemory) {
    let me = Principal::default();
    let keys = [
        "session/ab/x",
        "session/a/y",
        "session/a",
        "patrolling/x",
        "session/a/b/z",
    ];
    for key in keys {
        put(memory, &me, &[(key, "1")]).await.expect(WRITTEN);
    }
    let below = ["session/a", "session/a/b/z", "session/a/y"];
    check_list(memory, &me, Some("session/a"), &below).await;
    check_list(memory, &me, Some("patrol"), &[]).await;
    let all = [
        "patrolling/x",
        "session/a",
        "session/a/b/z",
        "session/a/y",
        "session/ab/x",
    ];
    check_list(memory, &me, None, &all).await;
}

async fn refuses_what_a_namespace_cannot_hold(memory: &impl WorkingMemory, clock: &ManualClock) {
    let me = Principal::default();
    put(
        memory,
        &me,
        &[("session/a/1", "1"), ("session/a/2", "1"), ("session/a/3", "1")],
    )
    .await
    .expect(WRITTEN);
    check_full(&put(memory, &me, &[("session/a/4", "1")]).await);
    check(memory, &me, "session/a/4", None).await;
    put(memory, &me, &[("session/a/3", "2")])
        .await
        .expect("a known key takes no room");
    put(memory, &me, &[("session/b/1", "1")])
        .await
        .expect("another namespace has its own room");
    clock.advance(DEFAULT_TTL);
    put(memory, &me, &[("session/a/4", "1")])
        .await
        .expect("expired entries take no room");
}

async fn keeps_all_notes_or_none(memory: &impl WorkingMemory) {
    let me = Principal::default();
    put(memory, &me, &[("session/a/1", "old"), ("session/a/2", "old")])
        .await
        .expect(WRITTEN);
    check_full(
        &put(
            memory,
            &me,
            &[("session/a/1", "new"), ("session/a/3", "new"), ("session/a/4", "new")],
        )
        .await,
    );
    check(memory, &me, "session/a/1", Some("old")).await;
    check_list(memory, &me, None, &["session/a/1", "session/a/2"]).await;
}

async fn finds_entries_by_words(memory: &impl WorkingMemory) {
    let me = Principal::default();
    let texts = [
        ("session/a/1", "the garden gate is made of iron"),
        ("session/a/2", "iron rusts"),
        ("session/a/iron-prices", "a table"),
        ("session/b/1", "a gate of iron"),
        ("session/a/3", "nothing of the kind"),
    ];
    put(memory, &me, &texts).await.expect(WRITTEN);
    let found = async |query, limit| {
        let found = memory
            .search(&me, Some(&path("session/a")), query, limit)
            .await
            .expect(READ);
        found
            .iter()
            .map(|hit| hit.item.key.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("iron gate", 1).await,
        ["session/a/1"],
        "the best entry comes first"
    );
    assert_eq!(
        found("iron gate", 9).await.len(),
        3,
        "keys are searched too, and only below the prefix"
    );
    assert!(found("unheard of things?", 0).await.is_empty());
    assert!(
        found("unheard", 9).await.is_empty(),
        "what has no word of the query is not found"
    );
}

async fn keeps_principals_apart(memory: &impl WorkingMemory) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    put(memory, &me, &[("shared/x", "mine")]).await.expect(WRITTEN);
    check(memory, &other, "shared/x", None).await;
    check_list(memory, &other, None, &[]).await;
    assert!(
        !delete(memory, &other, "shared/x").await,
        "an entry of another principal cannot be deleted"
    );
    check(memory, &me, "shared/x", Some("mine")).await;
}

const WRITTEN: &str = "the memory can be written";
const READ: &str = "the memory can be read";

fn path(text: &str) -> StorePath {
    StorePath::new(text).expect("the key is a path")
}

fn note(key: &str, value: &str) -> WorkingNote {
    WorkingNote::new(path(key), value, Provenance::TOOL)
}

async fn put(
    memory: &impl WorkingMemory,
    principal: &Principal,
    notes: &[(&str, &str)],
) -> Result<(), WorkingMemoryError> {
    let notes = notes.iter().map(|(key, value)| note(key, value));
    memory.put(principal, notes.collect()).await
}

async fn delete(memory: &impl WorkingMemory, principal: &Principal, key: &str) -> bool {
    memory.delete(principal, &path(key)).await.expect(WRITTEN)
}

async fn check(memory: &impl WorkingMemory, principal: &Principal, key: &str, value: Option<&str>) {
    let entry = memory.get(principal, &path(key)).await.expect(READ);
    assert_eq!(
        entry.as_deref().map(|entry| entry.value.as_str()),
        value,
        "what {principal} has under `{key}`"
    );
}

async fn check_list(memory: &impl WorkingMemory, principal: &Principal, prefix: Option<&str>, expected: &[&str]) {
    let entries = memory.list(principal, prefix.map(path).as_ref()).await.expect(READ);
    let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, expected, "what {principal} has below {prefix:?}");
}

fn check_full(result: &Result<(), WorkingMemoryError>) {
    let is_full = matches!(result, Err(WorkingMemoryError::Full { namespace, limit: 3 }) if namespace == "session/a");
    assert!(is_full, "a full namespace says so: {result:?}");
}
