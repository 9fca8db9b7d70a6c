//! The conformance suite of [`SharedDocuments`].

use crate::store::{LockedDocument, SharedDocuments, StoreErrorKind};

/// Checks that the values that `make` creates keep the contract of [`SharedDocuments`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn shared_documents<D: SharedDocuments>(make: impl AsyncFn() -> D) {
    keeps_each_document_by_its_name(&make().await).await;
    changes_come_one_after_another(&make().await).await;
    a_lock_replaces_once(&make().await).await;
}

async fn lock(documents: &impl SharedDocuments, name: &str) -> LockedDocument {
    documents.lock(name).await.expect("a document can be locked")
}

async fn version(documents: &impl SharedDocuments, name: &str) -> u64 {
    documents.version(name).await.expect("a version can be read")
}

async fn replace(documents: &impl SharedDocuments, locked: LockedDocument, json: &str) -> u64 {
    let replaced = documents.replace(locked, json.to_owned()).await;
    replaced.expect("a locked document can be replaced")
}

async fn keeps_each_document_by_its_name(documents: &impl SharedDocuments) {
    assert_eq!(version(documents, "a").await, 0, "there is no document at first");
    let locked = lock(documents, "a").await;
    assert_eq!(
        (locked.version, &locked.json),
        (0, &None),
        "there is no document at first"
    );
    let first = replace(documents, locked, "[1]").await;
    assert!(first > 0, "a version grows with each change");
    assert_eq!(
        version(documents, "a").await,
        first,
        "the version is the version of the change"
    );
    assert_eq!(version(documents, "b").await, 0, "documents are apart");
    let locked = lock(documents, "a").await;
    assert_eq!(locked.json.as_deref(), Some("[1]"), "the content comes back unchanged");
    documents.release(locked).await;
    assert_eq!(version(documents, "a").await, first, "a release changes nothing");
    let locked = lock(documents, "a").await;
    assert!(
        replace(documents, locked, "[2]").await > first,
        "a version grows with each change"
    );
}

async fn changes_come_one_after_another(documents: &impl SharedDocuments) {
    let add = async || {
        let locked = lock(documents, "numbers").await;
        let json = format!("{}1", locked.json.as_deref().unwrap_or_default());
        replace(documents, locked, &json).await;
    };
    tokio::join!(add(), add(), add(), add());
    let locked = lock(documents, "numbers").await;
    assert_eq!(locked.json.as_deref(), Some("1111"), "no change is lost");
}

async fn a_lock_replaces_once(documents: &impl SharedDocuments) {
    let locked = lock(documents, "a").await;
    replace(documents, locked.clone(), "[1]").await;
    let late = documents.replace(locked, "[2]".to_owned()).await;
    let error = late.expect_err("a lock that has ended replaces nothing");
    assert_eq!(
        error.kind(),
        StoreErrorKind::Conflict,
        "a lock that has ended is a conflict"
    );
    let locked = lock(documents, "a").await;
    assert_eq!(
        locked.json.as_deref(),
        Some("[1]"),
        "a lock that has ended replaces nothing"
    );
}
