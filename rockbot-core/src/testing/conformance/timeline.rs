//! The conformance suite that stores of dated entries share.

use std::marker::PhantomData;

use crate::store::{TimelineEntry, TimelineStore};
use crate::{Clock as _, Principal, SystemClock, Timestamp};

/// A store under test, and the function that creates its entries from a session and a time in
/// milliseconds.
struct Subject<S, T, F> {
    store: S,
    entry: F,
    entries: PhantomData<fn() -> T>,
}

/// Checks that the stores that `make` creates keep the contract of [`TimelineStore`]; `entry`
/// creates the entry of a session and a time in milliseconds.
pub(super) async fn timeline<S: TimelineStore<T>, T: TimelineEntry + PartialEq>(
    make: impl AsyncFn() -> S,
    entry: impl Fn(&str, u64) -> T,
) {
    let subject = async || Subject {
        store: make().await,
        entry: &entry,
        entries: PhantomData,
    };
    returns_the_newest_of_all_sessions_oldest_first(&subject().await).await;
    keeps_principals_apart(&subject().await).await;
    purges_entries_beyond_age_and_number(&subject().await).await;
}

async fn returns_the_newest_of_all_sessions_oldest_first<S, T, F>(subject: &Subject<S, T, F>)
where
    S: TimelineStore<T>,
    T: TimelineEntry + PartialEq,
    F: Fn(&str, u64) -> T,
{
    let me = Principal::default();
    for (session, millis) in [("a", 3000), ("b", 1000), ("a", 2000), ("../c/d", 4000)] {
        subject.append(&me, (session, millis)).await;
    }
    subject
        .check(&me, (0, 10), &[("b", 1000), ("a", 2000), ("a", 3000), ("../c/d", 4000)])
        .await;
    subject
        .check(&me, (2000, 10), &[("a", 2000), ("a", 3000), ("../c/d", 4000)])
        .await;
    subject.check(&me, (0, 2), &[("a", 3000), ("../c/d", 4000)]).await;
    subject.check(&me, (4001, 10), &[]).await;
    subject.check(&me, (0, 0), &[]).await;
}

async fn keeps_principals_apart<S, T, F>(subject: &Subject<S, T, F>)
where
    S: TimelineStore<T>,
    T: TimelineEntry + PartialEq,
    F: Fn(&str, u64) -> T,
{
    let me = Principal::from("me");
    let other = Principal::from("other");
    subject.append(&me, ("s", 1000)).await;
    subject.check(&other, (0, 10), &[]).await;
    subject.check(&me, (0, 10), &[("s", 1000)]).await;
}

async fn purges_entries_beyond_age_and_number<S, T, F>(subject: &Subject<S, T, F>)
where
    S: TimelineStore<T>,
    T: TimelineEntry + PartialEq,
    F: Fn(&str, u64) -> T,
{
    let me = Principal::from("me");
    let other = Principal::from("other");
    // Recent times: a store in files takes a file whose entries are much older than its last change
    // as edited by a person, and keeps it.
    let now = SystemClock.now().as_millis();
    for (session, ago) in [("a", 5000), ("b", 4000), ("a", 3000), ("b", 2000)] {
        subject.append(&me, (session, now - ago)).await;
    }
    subject.append(&other, ("a", now - 5000)).await;
    subject.check_purge(now - 4000, 3, 2).await;
    subject.check(&other, (0, 10), &[]).await;
    subject
        .check(&me, (0, 10), &[("b", now - 4000), ("a", now - 3000), ("b", now - 2000)])
        .await;
    subject.check_purge(0, 2, 1).await;
    subject.append(&me, ("a", now - 1000)).await;
    subject
        .check(&me, (0, 10), &[("a", now - 3000), ("b", now - 2000), ("a", now - 1000)])
        .await;
    subject.check_purge(0, 3, 0).await;
    subject.check_purge(0, 0, 3).await;
    subject.check(&me, (0, 10), &[]).await;
}

impl<S, T, F> Subject<S, T, F>
where
    S: TimelineStore<T>,
    T: TimelineEntry + PartialEq,
    F: Fn(&str, u64) -> T,
{
    async fn append(&self, principal: &Principal, (session, millis): (&str, u64)) {
        let appended = self.store.append(principal, (self.entry)(session, millis)).await;
        appended.expect("the store can be written");
    }

    async fn check(&self, principal: &Principal, (since, limit): (u64, usize), expected: &[(&str, u64)]) {
        let recent = self
            .store
            .query_recent(principal, Timestamp::from_millis(since), limit)
            .await;
        let expected: Vec<_> = expected
            .iter()
            .map(|(session, millis)| (self.entry)(session, *millis))
            .collect();
        assert_eq!(
            recent.expect("the store can be read"),
            expected,
            "{limit} entries since {since}"
        );
    }

    async fn check_purge(&self, before: u64, max: usize, expected: u64) {
        let purged = self.store.purge(Timestamp::from_millis(before), max).await;
        assert_eq!(
            purged.expect("the store can be written"),
            expected,
            "older than {before}, more than {max}"
        );
    }
}
