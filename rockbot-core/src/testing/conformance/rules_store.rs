//! The conformance suite of [`RulesStore`].

use crate::Principal;
use crate::store::{Rule, RulesStore};

/// Checks that the values that `make` creates keep the contract of [`RulesStore`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn rules_store<S: RulesStore>(make: impl AsyncFn() -> S) {
    keeps_the_order_in_which_rules_were_added(&make().await).await;
    knows_a_rule_whatever_its_case(&make().await).await;
    keeps_principals_apart(&make().await).await;
    keeps_the_newest_time_zone_of_each_principal(&make().await).await;
}

async fn keeps_the_order_in_which_rules_were_added(store: &impl RulesStore) {
    let me = Principal::default();
    check(store, &me, &[]).await;
    for text in ["b", "a", "c"] {
        assert!(add(store, &me, text).await, "`{text}` is new");
    }
    check(store, &me, &["b", "a", "c"]).await;
}

async fn knows_a_rule_whatever_its_case(store: &impl RulesStore) {
    let me = Principal::default();
    assert!(add(store, &me, "Antworte auf Norwegisch, ÅSE").await, "the rule is new");
    assert!(
        !add(store, &me, "antworte auf norwegisch, åse").await,
        "the rule is known"
    );
    check(store, &me, &["Antworte auf Norwegisch, ÅSE"]).await;
    assert!(
        remove(store, &me, "ANTWORTE AUF NORWEGISCH, åse").await,
        "there is a rule to remove"
    );
    assert!(
        !remove(store, &me, "ANTWORTE AUF NORWEGISCH, åse").await,
        "there is none any more"
    );
    check(store, &me, &[]).await;
}

async fn keeps_principals_apart(store: &impl RulesStore) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    add(store, &me, "mine").await;
    assert!(
        add(store, &other, "mine").await,
        "a rule of another principal is another rule"
    );
    assert!(remove(store, &other, "mine").await, "a principal removes its own rule");
    check(store, &other, &[]).await;
    check(store, &me, &["mine"]).await;
}

async fn keeps_the_newest_time_zone_of_each_principal(store: &impl RulesStore) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    check_time_zone(store, &me, None).await;
    for name in ["Europe/Paris", "America/Argentina/Buenos_Aires"] {
        let kept = store.set_time_zone(&me, name).await;
        kept.expect("the store can be written");
        check_time_zone(store, &me, Some(name)).await;
    }
    check_time_zone(store, &other, None).await;
    check(store, &me, &[]).await;
}

fn rule(text: &str) -> Rule {
    Rule::new(text).expect("the text is a rule")
}

async fn add(store: &impl RulesStore, principal: &Principal, text: &str) -> bool {
    store
        .add(principal, rule(text))
        .await
        .expect("the store can be written")
}

async fn remove(store: &impl RulesStore, principal: &Principal, text: &str) -> bool {
    store
        .remove(principal, &rule(text))
        .await
        .expect("the store can be written")
}

async fn check(store: &impl RulesStore, principal: &Principal, expected: &[&str]) {
    let rules = store.list(principal).await.expect("the store can be read");
    let expected: Vec<_> = expected.iter().map(|text| rule(text)).collect();
    assert_eq!(rules, expected, "the rules of {principal}");
}

async fn check_time_zone(store: &impl RulesStore, principal: &Principal, expected: Option<&str>) {
    let zone = store.time_zone(principal).await.expect("the store can be read");
    assert_eq!(zone.as_deref(), expected, "the time zone of {principal}");
}
