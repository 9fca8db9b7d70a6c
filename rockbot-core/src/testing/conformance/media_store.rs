//! The conformance suite of media stores.

use crate::store::MediaStore;
use crate::{Digest, Principal, Timestamp};

/// Checks that the store that `make` creates keeps the promises of [`MediaStore`]. `make` returns
/// an empty store at each call.
///
/// # Panics
///
/// Panics if a promise is broken.
pub async fn media_store<S: MediaStore>(make: impl AsyncFn() -> S) {
    returns_what_was_put(&make().await).await;
    principals_have_media_of_their_own(&make().await).await;
    a_purge_removes_what_is_older(&make().await).await;
}

async fn returns_what_was_put(store: &impl MediaStore) {
    let me = Principal::default();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let stored = store.put(&me, bytes.clone().into()).await.expect("media can be put");
    assert_eq!(stored.size, 100_000, "the reference has the size");
    let again = store
        .put(&me, bytes.clone().into())
        .await
        .expect("media can be put again");
    assert_eq!(again, stored, "equal bytes have equal references");
    let found = store.get(&me, &stored.digest).await.expect("media can be read");
    assert_eq!(found.as_deref(), Some(&bytes[..]), "the bytes come back unchanged");
    let unknown = store
        .get(&me, &Digest::of(["unknown"]))
        .await
        .expect("media can be read");
    assert_eq!(unknown, None, "an unknown digest has no bytes");
    let empty = store.put(&me, Vec::new().into()).await.expect("empty media can be put");
    let found = store.get(&me, &empty.digest).await.expect("media can be read");
    assert_eq!(found.as_deref(), Some(&[][..]), "empty media come back");
}

async fn principals_have_media_of_their_own(store: &impl MediaStore) {
    let ann = Principal::from("ann");
    let bob = Principal::from("b/../o b");
    let stored = store.put(&ann, "secret".into()).await.expect("media can be put");
    let found = store.get(&bob, &stored.digest).await.expect("media can be read");
    assert_eq!(found, None, "media of another principal are not found");
    store.put(&bob, "secret".into()).await.expect("media can be put");
    let found = store.get(&bob, &stored.digest).await.expect("media can be read");
    assert_eq!(
        found.as_deref(),
        Some(&b"secret"[..]),
        "each principal may put the same bytes"
    );
}

async fn a_purge_removes_what_is_older(store: &impl MediaStore) {
    let me = Principal::default();
    let stored = store.put(&me, "old".into()).await.expect("media can be put");
    let purged = store
        .purge(Timestamp::from_millis(0))
        .await
        .expect("media can be purged");
    assert_eq!(purged, 0, "newer media stay");
    let found = store.get(&me, &stored.digest).await.expect("media can be read");
    assert!(found.is_some(), "newer media stay");
    let far = Timestamp::from_millis(4_102_444_800_000);
    assert_eq!(
        store.purge(far).await.expect("media can be purged"),
        1,
        "older media go"
    );
    let found = store.get(&me, &stored.digest).await.expect("media can be read");
    assert_eq!(found, None, "purged media are gone");
}
