//! The conformance suite of [`LongTermMemory`].

use crate::chat::Provenance;
use crate::store::{LongTermMemory, LongTermMemoryExt as _, MemoryEntry, MemoryQuery, Remembered, StorePath};
use crate::{Clock as _, MemoryId, Principal, SystemClock, Timestamp};

/// Checks that the values that `make` creates keep the contract of [`LongTermMemory`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn long_term_memory<M: LongTermMemory>(make: impl AsyncFn() -> M) {
    keeps_an_entry_whole(&make().await).await;
    an_entry_moves_to_another_category(&make().await).await;
    lists_entries_by_id(&make().await).await;
    keeps_principals_apart(&make().await).await;
    learns_the_same_once(&make().await).await;
    replaces_only_what_is_still_there(&make().await).await;
    finds_the_best_first(&make().await).await;
    finds_what_is_asked_for(&make().await).await;
    a_change_is_seen_by_the_next_search(&make().await).await;
    archives_until_it_is_undone(&make().await).await;
    purges_what_was_archived_long_ago(&make().await).await;
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
    let me = Principal::from("me");
    let other = Principal::from("other");
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

async fn learns_the_same_once(memory: &impl LongTermMemory) {
    let me = Principal::default();
    let remember = async |entry: MemoryEntry| memory.remember(&me, entry).await.expect(WRITTEN);
    let first = fact("m1", "Likes tea.");
    assert_eq!(
        remember(first.clone()).await,
        Remembered::Added(first.clone().into()),
        "a new fact is added"
    );
    let mut again = fact("m2", "likes  TEA");
    again.created_at = Timestamp::from_millis(5000);
    let mut expected = first.clone();
    expected.reinforce(&again);
    assert_eq!(
        remember(again).await,
        Remembered::Reinforced(expected.clone().into()),
        "the same words reinforce what is known"
    );
    assert_eq!(
        (expected.reinforcement_count, expected.last_seen_at),
        (2, Some(Timestamp::from_millis(5000)))
    );
    check(memory, &me, "m1", Some(expected)).await;
    remember(fact("m3", "likes green tea")).await;
    assert_eq!(ids(memory, &me).await, ["m1", "m3"], "other words are another fact");
    memory
        .archive(&me, &"m1".into(), "wrong", Timestamp::from_millis(6000))
        .await
        .expect(WRITTEN);
    assert!(
        matches!(remember(fact("m4", "likes tea")).await, Remembered::Added(_)),
        "what is archived is not known"
    );
    memory
        .remember(&"other".into(), fact("m5", "likes green tea"))
        .await
        .expect(WRITTEN);
    check(memory, &me, "m3", Some(fact("m3", "likes green tea"))).await;
}

async fn replaces_only_what_is_still_there(memory: &impl LongTermMemory) {
    let me = Principal::default();
    let old = fact("m1", "old");
    let new = fact("m1", "new");
    let replace =
        async |before: &MemoryEntry, after: MemoryEntry| memory.replace(&me, before, after).await.expect(WRITTEN);
    assert!(!replace(&old, new.clone()).await, "there is nothing to replace");
    save(memory, &me, old.clone()).await;
    assert!(replace(&old, new.clone()).await, "it is there as it was");
    assert!(!replace(&old, fact("m1", "newer")).await, "it has changed since");
    assert!(!replace(&new, fact("m2", "other")).await, "another id is another entry");
    check(memory, &me, "m1", Some(new)).await;
    check(memory, &me, "m2", None).await;
    let changed = memory
        .update(&me, &"m1".into(), |entry| entry.content.push('!'))
        .await
        .expect(WRITTEN);
    assert_eq!(changed.as_deref(), Some(&fact("m1", "new!")));
    let nothing = memory.update(&me, &"m2".into(), |_| {}).await.expect(WRITTEN);
    assert_eq!(nothing, None, "what is not there is not changed");
}

async fn finds_the_best_first(memory: &impl LongTermMemory) {
    let me = Principal::default();
    for (id, content) in [
        ("m1", "the garden gate is made of iron"),
        ("m2", "iron does rust"),
        ("m3", "nothing of the kind"),
    ] {
        save(memory, &me, fact(id, content)).await;
    }
    check_search(memory, &me, MemoryQuery::new("iron gate"), &["m1", "m2"]).await;
    check_search(
        memory,
        &me,
        MemoryQuery {
            limit: 1,
            ..MemoryQuery::new("iron gate")
        },
        &["m1"],
    )
    .await;
    check_search(
        memory,
        &me,
        MemoryQuery {
            limit: 0,
            ..MemoryQuery::new("iron")
        },
        &[],
    )
    .await;
    check_search(memory, &me, MemoryQuery::new("unheard"), &[]).await;
    check_search(memory, &me, MemoryQuery::new("?"), &[]).await;
    check_search(memory, &"other".into(), MemoryQuery::new("iron"), &[]).await;
    let mut learned_again = fact("m2", "iron does rust");
    learned_again.last_seen_at = Some(Timestamp::from_millis(9000));
    save(memory, &me, learned_again).await;
    check_search(memory, &me, MemoryQuery::default(), &["m2", "m1", "m3"]).await;
}

async fn finds_what_is_asked_for(memory: &impl LongTermMemory) {
    let me = Principal::default();
    let facts = [
        ("m1", "user/taste", "Tea", 1000, Provenance::USER),
        ("m2", "user/tastebuds", "tea", 2000, Provenance::USER),
        ("m3", "user", "coffee", 3000, Provenance::TOOL),
    ];
    for (id, category, tag, created, provenance) in facts {
        let mut fact = fact(id, "drinks much");
        (fact.category, fact.tags) = (Some(path(category)), vec![tag.to_owned(), "drink".to_owned()]);
        (fact.created_at, fact.provenance) = (Timestamp::from_millis(created), provenance);
        save(memory, &me, fact).await;
    }
    let at = |millis| Some(Timestamp::from_millis(millis));
    let default = MemoryQuery::default;
    for text in ["", "drinks"] {
        let check = async |query: MemoryQuery, expected: &[&str]| {
            let query = MemoryQuery {
                text: text.to_owned(),
                ..query
            };
            let mut found = search(memory, &me, query.clone()).await;
            found.sort();
            assert_eq!(found, expected, "what is found for {query:?}");
        };
        check(
            MemoryQuery {
                category: Some(path("user")),
                ..default()
            },
            &["m1", "m2", "m3"],
        )
        .await;
        check(
            MemoryQuery {
                category: Some(path("user/taste")),
                ..default()
            },
            &["m1"],
        )
        .await;
        check(
            MemoryQuery {
                category: Some(path("use")),
                ..default()
            },
            &[],
        )
        .await;
        check(
            MemoryQuery {
                tags: vec!["TEA".into(), "drink".into()],
                ..default()
            },
            &["m1", "m2"],
        )
        .await;
        check(
            MemoryQuery {
                created_after: at(2000),
                ..default()
            },
            &["m2", "m3"],
        )
        .await;
        check(
            MemoryQuery {
                created_before: at(2000),
                ..default()
            },
            &["m1", "m2"],
        )
        .await;
        check(
            MemoryQuery {
                source: Some("tool".into()),
                ..default()
            },
            &["m3"],
        )
        .await;
    }
    check_search(memory, &me, MemoryQuery::new("coffee"), &["m3"]).await;
    check_search(memory, &me, MemoryQuery::new("tastebuds"), &["m2"]).await;
}

async fn a_change_is_seen_by_the_next_search(memory: &impl LongTermMemory) {
    let me = Principal::default();
    save(memory, &me, fact("m1", "the gate is of iron")).await;
    save(memory, &me, fact("m1", "the gate is of wood")).await;
    check_search(memory, &me, MemoryQuery::new("iron"), &[]).await;
    check_search(memory, &me, MemoryQuery::new("wood"), &["m1"]).await;
    memory.delete(&me, &"m1".into()).await.expect(WRITTEN);
    check_search(memory, &me, MemoryQuery::new("wood"), &[]).await;
}

async fn archives_until_it_is_undone(memory: &impl LongTermMemory) {
    let me = Principal::default();
    let id = MemoryId::from("m1");
    let now = Timestamp::from_millis(7000);
    let unknown = memory.archive(&me, &id, "wrong", now).await.expect(WRITTEN);
    assert_eq!(unknown, None, "there is nothing to archive");
    save(memory, &me, fact("m1", "likes tea")).await;
    let mut expected = fact("m1", "likes tea");
    (expected.archived_at, expected.archive_reason) = (Some(now), Some("wrong".to_owned()));
    let archived = memory.archive(&me, &id, "wrong", now).await.expect(WRITTEN);
    assert_eq!(archived.as_deref(), Some(&expected));
    for text in ["", "tea"] {
        let with_archived = MemoryQuery {
            with_archived: true,
            ..MemoryQuery::new(text)
        };
        check_search(memory, &me, MemoryQuery::new(text), &[]).await;
        check_search(memory, &me, with_archived, &["m1"]).await;
    }
    assert_eq!(ids(memory, &me).await, ["m1"], "what is archived is listed");
    check(memory, &me, "m1", Some(expected)).await;
    let restored = memory.restore(&me, &id).await.expect(WRITTEN);
    assert_eq!(restored.as_deref(), Some(&fact("m1", "likes tea")));
    check_search(memory, &me, MemoryQuery::new("tea"), &["m1"]).await;
}

const WRITTEN: &str = "the memory can be written";

async fn purges_what_was_archived_long_ago(memory: &impl LongTermMemory) {
    let me = Principal::default();
    let other = Principal::from("other");
    // A memory in files knows by the time what a person changed in them.
    let now = SystemClock.now().as_millis();
    let archived = |id: &str, ago: Option<u64>| MemoryEntry {
        archived_at: ago.map(|ago| Timestamp::from_millis(now - ago)),
        ..fact(id, &format!("fact {id}"))
    };
    let entries = [
        ("live", None),
        ("new", Some(1000)),
        ("old", Some(3000)),
        ("back", Some(3000)),
    ];
    for (id, ago) in entries {
        save(memory, &me, archived(id, ago)).await;
    }
    save(memory, &other, archived("old", Some(3000))).await;
    // By a clock that was wrong.
    let learned = Timestamp::from_millis(now);
    let undated = MemoryEntry {
        created_at: learned,
        ..archived("undated", Some(3000))
    };
    save(memory, &me, undated).await;
    let restored = memory.restore(&me, &"back".into()).await;
    restored.expect("the memory can be written");
    let purge = async || {
        let purged = memory.purge(Timestamp::from_millis(now - 2000)).await;
        purged.expect("the memory can be written")
    };
    assert_eq!(purge().await, 2, "what was archived long ago goes, of all principals");
    assert_eq!(purge().await, 0, "and only once");
    assert!(ids(memory, &other).await.is_empty());
    check(memory, &me, "new", Some(archived("new", Some(1000)))).await;
    let left = ids(memory, &me).await;
    assert_eq!(left, ["back", "live", "new", "undated"].map(MemoryId::from));
    check_search(memory, &me, MemoryQuery::new("fact"), &["back", "live"]).await;
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).expect("the category is a path")
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, Timestamp::from_millis(1000), Provenance::USER)
}

fn entry(id: &str, category: Option<&str>) -> MemoryEntry {
    MemoryEntry {
        category: category.map(path),
        tags: vec!["tag".to_owned()],
        updated_at: Some(Timestamp::from_millis(2000)),
        metadata: [("source".to_owned(), "inferred".to_owned())].into(),
        importance_score: 0.7,
        last_seen_at: Some(Timestamp::from_millis(3000)),
        reinforcement_count: 3,
        ..fact(id, &format!("the content of {id}"))
    }
}

async fn search(memory: &impl LongTermMemory, principal: &Principal, query: MemoryQuery) -> Vec<String> {
    let found = memory.search(principal, &query).await.expect("the memory can be read");
    assert!(found.iter().all(|hit| hit.score > 0.0), "every score is above 0");
    found.iter().map(|hit| hit.item.id.to_string()).collect()
}

async fn check_search(memory: &impl LongTermMemory, principal: &Principal, query: MemoryQuery, expected: &[&str]) {
    let found = search(memory, principal, query.clone()).await;
    assert_eq!(found, expected, "what {principal} finds for {query:?}");
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
