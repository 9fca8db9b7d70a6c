//! The promises of [`FeedbackStore`].

use crate::store::{FeedbackEntry, FeedbackSignal, FeedbackStore};
use crate::{Clock as _, Principal, SystemClock, Timestamp};

/// Checks that what `make` makes keeps the promises of [`FeedbackStore`].
///
/// # Panics
///
/// Panics when a promise is broken.
pub async fn feedback_store<S: FeedbackStore>(make: impl AsyncFn() -> S) {
    returns_the_newest_of_all_sessions_oldest_first(&make().await).await;
    keeps_principals_apart(&make().await).await;
    purges_what_is_too_old_and_too_much(&make().await).await;
}

async fn returns_the_newest_of_all_sessions_oldest_first(store: &impl FeedbackStore) {
    let me = Principal::default();
    for (session, millis) in [("a", 3000), ("b", 1000), ("a", 2000), ("../c/d", 4000)] {
        append(store, &me, entry(session, millis)).await;
    }
    check(
        store,
        &me,
        (0, 10),
        &[("b", 1000), ("a", 2000), ("a", 3000), ("../c/d", 4000)],
    )
    .await;
    check(store, &me, (2000, 10), &[("a", 2000), ("a", 3000), ("../c/d", 4000)]).await;
    check(store, &me, (0, 2), &[("a", 3000), ("../c/d", 4000)]).await;
    check(store, &me, (4001, 10), &[]).await;
    check(store, &me, (0, 0), &[]).await;
}

async fn keeps_principals_apart(store: &impl FeedbackStore) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    append(store, &me, entry("s", 1000)).await;
    check(store, &other, (0, 10), &[]).await;
    check(store, &me, (0, 10), &[("s", 1000)]).await;
}

async fn purges_what_is_too_old_and_too_much(store: &impl FeedbackStore) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    // A store in files knows by the time what a person wrote into them.
    let now = SystemClock.now().as_millis();
    for (session, ago) in [("a", 5000), ("b", 4000), ("a", 3000), ("b", 2000)] {
        append(store, &me, entry(session, now - ago)).await;
    }
    append(store, &other, entry("a", now - 5000)).await;
    check_purge(store, now - 4000, 3, 2).await;
    check(store, &other, (0, 10), &[]).await;
    check(
        store,
        &me,
        (0, 10),
        &[("b", now - 4000), ("a", now - 3000), ("b", now - 2000)],
    )
    .await;
    check_purge(store, 0, 2, 1).await;
    append(store, &me, entry("a", now - 1000)).await;
    check(
        store,
        &me,
        (0, 10),
        &[("a", now - 3000), ("b", now - 2000), ("a", now - 1000)],
    )
    .await;
    check_purge(store, 0, 3, 0).await;
    check_purge(store, 0, 0, 3).await;
    check(store, &me, (0, 10), &[]).await;
}

async fn check_purge(store: &impl FeedbackStore, before: u64, most: usize, expected: u64) {
    let purged = store.purge(Timestamp::from_millis(before), most).await;
    assert_eq!(
        purged.expect("the store can be written"),
        expected,
        "older than {before}, more than {most}"
    );
}

fn entry(session: &str, millis: u64) -> FeedbackEntry {
    FeedbackEntry {
        id: format!("f{millis}"),
        session_id: session.into(),
        signal_type: FeedbackSignal::Correction,
        summary: "two\nlines".to_owned(),
        detail: Some("{}".to_owned()),
        timestamp: Timestamp::from_millis(millis),
    }
}

async fn append(store: &impl FeedbackStore, principal: &Principal, entry: FeedbackEntry) {
    store.append(principal, entry).await.expect("the store can be written");
}

async fn check(
    store: &impl FeedbackStore,
    principal: &Principal,
    (since, limit): (u64, usize),
    expected: &[(&str, u64)],
) {
    let recent = store
        .query_recent(principal, Timestamp::from_millis(since), limit)
        .await;
    let expected: Vec<_> = expected
        .iter()
        .map(|(session, millis)| entry(session, *millis))
        .collect();
    assert_eq!(
        recent.expect("the store can be read"),
        expected,
        "{limit} entries since {since}"
    );
}
