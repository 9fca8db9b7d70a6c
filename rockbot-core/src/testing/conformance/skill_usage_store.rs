//! The promises of [`SkillUsageStore`].

use crate::store::{SkillUsage, SkillUsageStore, StorePath};
use crate::{Clock as _, Principal, SystemClock, Timestamp};

/// Checks that what `make` makes keeps the promises of [`SkillUsageStore`].
///
/// # Panics
///
/// Panics when a promise is broken.
pub async fn skill_usage_store<S: SkillUsageStore>(make: impl AsyncFn() -> S) {
    returns_the_newest_of_all_sessions_oldest_first(&make().await).await;
    keeps_principals_apart(&make().await).await;
    purges_what_is_too_old_and_too_much(&make().await).await;
}

async fn returns_the_newest_of_all_sessions_oldest_first(store: &impl SkillUsageStore) {
    let me = Principal::default();
    for (session, millis) in [("a", 3000), ("b", 1000), ("a", 2000), ("../c/d", 4000)] {
        append(store, &me, usage(session, millis)).await;
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
}

async fn keeps_principals_apart(store: &impl SkillUsageStore) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    append(store, &me, usage("s", 1000)).await;
    check(store, &other, (0, 10), &[]).await;
    check(store, &me, (0, 10), &[("s", 1000)]).await;
}

async fn purges_what_is_too_old_and_too_much(store: &impl SkillUsageStore) {
    let (me, other) = (Principal::from("me"), Principal::from("other"));
    // A store in files knows by the time what a person wrote into them.
    let now = SystemClock.now().as_millis();
    for (session, ago) in [("a", 5000), ("b", 4000), ("a", 3000), ("b", 2000)] {
        append(store, &me, usage(session, now - ago)).await;
    }
    append(store, &other, usage("a", now - 5000)).await;
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
    append(store, &me, usage("a", now - 1000)).await;
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

async fn check_purge(store: &impl SkillUsageStore, before: u64, most: usize, expected: u64) {
    let purged = store.purge(Timestamp::from_millis(before), most).await;
    assert_eq!(
        purged.expect("the store can be written"),
        expected,
        "older than {before}, more than {most}"
    );
}

fn usage(session: &str, millis: u64) -> SkillUsage {
    SkillUsage {
        id: format!("u{millis}"),
        skill_name: StorePath::new("mcp/email").expect("the name is a path"),
        session_id: session.into(),
        timestamp: Timestamp::from_millis(millis),
    }
}

async fn append(store: &impl SkillUsageStore, principal: &Principal, usage: SkillUsage) {
    store.append(principal, usage).await.expect("the store can be written");
}

async fn check(
    store: &impl SkillUsageStore,
    principal: &Principal,
    (since, limit): (u64, usize),
    expected: &[(&str, u64)],
) {
    let recent = store
        .query_recent(principal, Timestamp::from_millis(since), limit)
        .await;
    let expected: Vec<_> = expected
        .iter()
        .map(|(session, millis)| usage(session, *millis))
        .collect();
    assert_eq!(
        recent.expect("the store can be read"),
        expected,
        "{limit} uses since {since}"
    );
}
