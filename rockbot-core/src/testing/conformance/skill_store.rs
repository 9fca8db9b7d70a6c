//! The conformance suite of [`SkillStore`].

use crate::chat::Provenance;
use crate::store::{Skill, SkillStore, StorePath};
use crate::{Principal, Timestamp};

/// Checks that the values that `make` creates keep the contract of [`SkillStore`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn skill_store<S: SkillStore>(make: impl AsyncFn() -> S) {
    keeps_a_skill_whole(&make().await).await;
    lists_skills_by_name(&make().await).await;
    keeps_names_apart(&make().await).await;
    keeps_principals_apart(&make().await).await;
    finds_skills_by_name_and_purpose(&make().await).await;
}

async fn keeps_a_skill_whole(store: &impl SkillStore) {
    let me = Principal::default();
    check(store, &me, "mcp/email", None).await;
    save(store, &me, skill("mcp/email", "old")).await;
    save(store, &me, skill("mcp/email", "new")).await;
    check(store, &me, "mcp/email", Some("new")).await;
    assert!(delete(store, &me, "mcp/email").await, "there is a skill to delete");
    assert!(!delete(store, &me, "mcp/email").await, "there is none any more");
    check(store, &me, "mcp/email", None).await;
}

async fn lists_skills_by_name(store: &impl SkillStore) {
    let me = Principal::default();
    for name in ["web", "mcp/email", "mcp"] {
        save(store, &me, skill(name, "x")).await;
    }
    let list = store.list(&me).await.expect("the store can be read");
    let names: Vec<_> = list.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(
        names,
        ["mcp", "mcp/email", "web"],
        "skills come in the order of their names"
    );
}

/// Names that a careless store could write to one file.
async fn keeps_names_apart(store: &impl SkillStore) {
    let me = Principal::default();
    let names = ["a/b", "a_b", "a-b", "a%2Fb", "A/b", "a/b.json", "con", "ünï"];
    for name in names {
        save(store, &me, skill(name, name)).await;
    }
    for name in names {
        check(store, &me, name, Some(name)).await;
    }
}

async fn keeps_principals_apart(store: &impl SkillStore) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    save(store, &me, skill("web", "mine")).await;
    check(store, &other, "web", None).await;
    assert!(
        !delete(store, &other, "web").await,
        "a skill of another principal cannot be deleted"
    );
    assert_eq!(
        store.list(&other).await.expect("the store can be read"),
        [],
        "nor listed"
    );
    check(store, &me, "web", Some("mine")).await;
}

async fn finds_skills_by_name_and_purpose(store: &impl SkillStore) {
    let me = Principal::default();
    for (name, summary, content) in [
        ("mcp/email", "reads and sends mail", "open the inbox"),
        ("web", "reads pages", "mail nobody"),
        ("mcp/inbox-zero", "", "sort the letters"),
    ] {
        let skill = Skill {
            summary: summary.to_owned(),
            ..skill(name, content)
        };
        save(store, &me, skill).await;
    }
    let found = async |query, limit| {
        let found = store.search(&me, query, limit).await.expect("the store can be read");
        found
            .iter()
            .map(|hit| hit.item.name.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("email", 9).await,
        ["mcp/email"],
        "a name is searched by its words"
    );
    assert_eq!(
        found("reads mail", 9).await,
        ["mcp/email", "web"],
        "the best comes first"
    );
    assert_eq!(found("reads mail", 1).await, ["mcp/email"]);
    assert_eq!(
        found("letters", 9).await,
        ["mcp/inbox-zero"],
        "how it is done counts while nothing says what for"
    );
    assert_eq!(found("inbox", 9).await, ["mcp/inbox-zero"], "and not otherwise");
    assert!(delete(store, &me, "mcp/email").await, "there is a skill to delete");
    assert_eq!(found("mail", 9).await, [""; 0], "what is deleted is not found");
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).expect("the name is a path")
}

fn skill(name: &str, content: &str) -> Skill {
    Skill {
        name: path(name),
        summary: "a summary".to_owned(),
        content: content.to_owned(),
        created_at: Timestamp::from_millis(1000),
        updated_at: Some(Timestamp::from_millis(2000)),
        archived_at: None,
        last_used_at: None,
        see_also: vec![path("skills")],
        metadata: [("license".to_owned(), "MIT".to_owned())].into(),
        provenance: Provenance::MODEL,
        versions: Vec::new(),
    }
    .replacing(&Skill::new(
        path(name),
        "before",
        Timestamp::from_millis(500),
        Provenance::USER,
    ))
}

async fn save(store: &impl SkillStore, principal: &Principal, skill: Skill) {
    store.save(principal, skill).await.expect("the store can be written");
}

async fn delete(store: &impl SkillStore, principal: &Principal, name: &str) -> bool {
    store
        .delete(principal, &path(name))
        .await
        .expect("the store can be written")
}

async fn check(store: &impl SkillStore, principal: &Principal, name: &str, content: Option<&str>) {
    let found = store.get(principal, &path(name)).await.expect("the store can be read");
    let expected = content.map(|content| skill(name, content));
    assert_eq!(found.as_deref(), expected.as_ref(), "the skill `{name}` of {principal}");
}
