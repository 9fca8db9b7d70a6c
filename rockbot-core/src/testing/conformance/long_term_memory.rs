//! The promises of [`LongTermMemory`].

use crate::chat::Provenance;
use crate::store::{LongTermMemory, MemoryEntry, StorePath};
use crate::{MemoryId, Principal, Timestamp};

/// Checks that what `make` makes keeps the promises of [`LongTermMemory`].
///
/// # Panics
///
/// Panics when a promise is broken.
pub async fn long_term_memory<M: LongTermMemory>(make: impl AsyncFn() -> M) {
    keeps_an_entry_whole(&make().await).await;
    an_entry_moves_to_another_category(&make().await).await;
    lists_entries_by_id(&make().await).await;
    keeps_principals_apart(&make().await).await;
}

async fn keeps_an_entry_whole(memory: &impl LongTermMemory) {
    let me = Principal::default();
    check(memory, &me, "m1", None).await;
    save(memory, &me, entry("m1", None)).await;
    check(memory, &me, "m1", Some(entry("m1", None))).await;
    let deleted = memory
        .delete(&me, &"m1".into())
        .await
        .expect("the memory can be written");
    assert_eq!(
        deleted.as_deref(),
        Some(&entry("m1", None)),
        "what was deleted is returned"
    );
    let deleted = memory
        .delete(&me, &"m1".into())
        .await
        .expect("the memory can be written");
    assert_eq!(deleted, None, "there is nothing to delete any more");
    check(memory, &me, "m1", None).await;
}

async fn an_entry_moves_to_another_category(memory: &impl LongTermMemory) {
    let me = Principal::default();
    for category in [None, Some("user/taste"), Some("user")] {
        save(memory, &me, entry("m1", category)).await;
        check(memory, &me, "m1", Some(entry("m1", category))).await;
        assert_eq!(ids(memory, &me).await, ["m1"], "an entry stands in one category");
    }
}

async fn lists_entries_by_id(memory: &impl LongTermMemory) {
    let me = Principal::default();
    for id in ["b", "../a", "c/d", "B"] {
        save(memory, &me, entry(id, Some("any"))).await;
    }
    assert_eq!(
        ids(memory, &me).await,
        ["../a", "B", "b", "c/d"],
        "entries come in the order of their ids"
    );
}

async fn keeps_principals_apart(memory: &impl LongTermMemory) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    save(memory, &me, entry("m1", None)).await;
    check(memory, &other, "m1", None).await;
    let deleted = memory
        .delete(&other, &"m1".into())
        .await
        .expect("the memory can be written");
    assert_eq!(deleted, None, "an entry of another principal cannot be deleted");
    assert_eq!(ids(memory, &other).await, [] as [MemoryId; 0], "nor listed");
    check(memory, &me, "m1", Some(entry("m1", None))).await;
}

fn entry(id: &str, category: Option<&str>) -> MemoryEntry {
    MemoryEntry {
        id: id.into(),
        content: format!("the content of {id}"),
        category: category.map(|text| StorePath::new(text).expect("the category is a path")),
        tags: vec!["tag".to_owned()],
        created_at: Timestamp::from_millis(1000),
        updated_at: Some(Timestamp::from_millis(2000)),
        metadata: [("source".to_owned(), "inferred".to_owned())].into(),
        importance_score: 0.7,
        provenance: Provenance::USER,
    }
}

async fn save(memory: &impl LongTermMemory, principal: &Principal, entry: MemoryEntry) {
    memory.save(principal, entry).await.expect("the memory can be written");
}

async fn ids(memory: &impl LongTermMemory, principal: &Principal) -> Vec<MemoryId> {
    let entries = memory.list(principal).await.expect("the memory can be read");
    entries.iter().map(|entry| entry.id.clone()).collect()
}

async fn check(memory: &impl LongTermMemory, principal: &Principal, id: &str, expected: Option<MemoryEntry>) {
    let found = memory.get(principal, &id.into()).await.expect("the memory can be read");
    assert_eq!(found.as_deref(), expected.as_ref(), "the entry `{id}` of {principal}");
}
