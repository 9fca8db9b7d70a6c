//! The promises that stores of dated entries have in common.

use std::fmt;

use async_trait::async_trait;

use crate::store::StoreError;
use crate::{Clock as _, Principal, SystemClock, Timestamp};

/// A store of dated entries, each of a session.
#[async_trait]
pub(super) trait Timeline {
    /// What it keeps.
    type Entry: fmt::Debug + PartialEq;

    /// The entry of this session and moment.
    fn entry(session: &str, millis: u64) -> Self::Entry;

    async fn append(&self, principal: &Principal, entry: Self::Entry) -> Result<(), StoreError>;

    async fn recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Self::Entry>, StoreError>;

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError>;
}

/// Checks that what `make` makes keeps them.
pub(super) async fn timeline<S: Timeline>(make: impl AsyncFn() -> S) {
    returns_the_newest_of_all_sessions_oldest_first(&make().await).await;
    keeps_principals_apart(&make().await).await;
    purges_what_is_too_old_and_too_much(&make().await).await;
}

async fn returns_the_newest_of_all_sessions_oldest_first(store: &impl Timeline) {
    let me = Principal::default();
    for (session, millis) in [("a", 3000), ("b", 1000), ("a", 2000), ("../c/d", 4000)] {
        append(store, &me, (session, millis)).await;
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

async fn keeps_principals_apart(store: &impl Timeline) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    append(store, &me, ("s", 1000)).await;
    check(store, &other, (0, 10), &[]).await;
    check(store, &me, (0, 10), &[("s", 1000)]).await;
}

async fn purges_what_is_too_old_and_too_much(store: &impl Timeline) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    // A store in files knows by the time what a person wrote into them.
    let now = SystemClock.now().as_millis();
    for (session, ago) in [("a", 5000), ("b", 4000), ("a", 3000), ("b", 2000)] {
        append(store, &me, (session, now - ago)).await;
    }
    append(store, &other, ("a", now - 5000)).await;
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
    append(store, &me, ("a", now - 1000)).await;
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

async fn check_purge(store: &impl Timeline, before: u64, most: usize, expected: u64) {
    let purged = store.purge(Timestamp::from_millis(before), most).await;
    assert_eq!(
        purged.expect("the store can be written"),
        expected,
        "older than {before}, more than {most}"
    );
}

async fn append<S: Timeline>(store: &S, principal: &Principal, (session, millis): (&str, u64)) {
    let appended = store.append(principal, S::entry(session, millis)).await;
    appended.expect("the store can be written");
}

async fn check<S: Timeline>(store: &S, principal: &Principal, (since, limit): (u64, usize), expected: &[(&str, u64)]) {
    let recent = store.recent(principal, Timestamp::from_millis(since), limit).await;
    let expected: Vec<_> = expected
        .iter()
        .map(|(session, millis)| S::entry(session, *millis))
        .collect();
    assert_eq!(
        recent.expect("the store can be read"),
        expected,
        "{limit} entries since {since}"
    );
}
