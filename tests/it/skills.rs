//! Skills on disk: what long-term memory on disk does not show already.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::chat::Provenance;
use rockbot_core::store::{Skill, SkillStore, StorePath};
use rockbot_core::testing::{ManualClock, conformance};
use rockbot_core::{Clock, Principal};
use rockbot_memory::{FileOptions, FileSkillStore};
use serde_json::{Value, json};

use crate::support::files::{files, names, write};
use crate::support::kill;

fn me() -> Principal {
    Principal::default()
}

fn open(folder: &Path) -> (FileSkillStore, ManualClock) {
    let clock = ManualClock::default();
    let options = FileOptions::default().with_clock(Arc::new(clock.clone()));
    (FileSkillStore::open_with(folder, options).unwrap(), clock)
}

fn path(text: &str) -> StorePath {
    StorePath::new(text).unwrap()
}

fn skill(name: &str, content: &str) -> Skill {
    Skill::new(path(name), content, ManualClock::default().now(), Provenance::MODEL)
}

async fn list(store: &FileSkillStore) -> Vec<String> {
    let skills = store.list(&me()).await.unwrap();
    skills.iter().map(|skill| skill.name.as_str().to_owned()).collect()
}

#[tokio::test]
async fn keeps_the_promises_of_a_skill_store() {
    let folders = Mutex::new(Vec::new());
    conformance::skill_store(async || {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = open(folder.path());
        folders.lock().unwrap().push(folder);
        store
    })
    .await;
}

#[tokio::test]
async fn a_skill_is_a_document_in_nested_folders() {
    let folder = tempfile::tempdir().unwrap();
    let (store, clock) = open(folder.path());
    let mut email = skill("mcp/email", "Open it.");
    email.see_also = vec![path("web")];
    store.save(&me(), email.clone()).await.unwrap();
    store.save(&"Ann".into(), skill("web", "Browse.")).await.unwrap();
    assert_eq!(names(folder.path()), ["@%41nn/web.json", "mcp/email.json"]);
    let document = r#"{
  "name": "mcp/email",
  "summary": "",
  "content": "Open it.",
  "createdAt": "2026-01-01T00:00:00.000Z",
  "seeAlso": [
    "web"
  ],
  "provenance": {
    "source": "model",
    "trust": "untrusted"
  }
}"#;
    assert_eq!(files(folder.path())["mcp/email.json"], document);
    write(
        folder.path(),
        "MCP/Web-Search.json",
        r#"{"content": "Search.", "manifest": [1], "summary": null}"#,
    );
    clock.advance(Duration::from_secs(3600));
    assert_eq!(list(&store).await, ["MCP/Web-Search", "mcp/email"]);
    drop(store);
    let (store, _) = open(folder.path());
    assert_eq!(
        store.get(&me(), &path("mcp/email")).await.unwrap(),
        Some(Arc::new(email))
    );
    store
        .save(&me(), skill("MCP/Web-Search", "Search well."))
        .await
        .unwrap();
    let document: Value = serde_json::from_str(&files(folder.path())["MCP/Web-Search.json"]).unwrap();
    assert_eq!(
        (&document["manifest"], &document["content"]),
        (&json!([1]), &json!("Search well."))
    );
    assert!(store.delete(&me(), &path("MCP/Web-Search")).await.unwrap());
    assert_eq!(names(folder.path()), ["@%41nn/web.json", "mcp/email.json"]);
}

#[tokio::test]
async fn deep_and_hostile_names_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let deep = ["d"; 200].join("/");
    let mut expected = vec![
        "@other/web",
        "CON",
        "a.json",
        "con",
        "lock",
        "mcp",
        "mcp.json",
        "mcp/x",
        &deep,
    ];
    let (store, _) = open(folder.path());
    for name in &expected {
        store.save(&me(), skill(name, name)).await.unwrap();
    }
    drop(store);
    expected.sort_unstable();
    let (store, _) = open(folder.path());
    assert_eq!(list(&store).await, expected);
    assert_eq!(store.list(&"other".into()).await.unwrap(), []);
    assert_eq!(store.damaged(), 0);
}

/// Saves until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let store = FileSkillStore::open(folder).unwrap();
    store.list(&me()).await.unwrap();
    kill::ready();
    for at in 0.. {
        let name = format!("s{}/x", at % 5);
        store.save(&me(), skill(&name, &format!("{round}-{at}"))).await.unwrap();
        kill::acknowledge(&format!("{name} {at}"));
    }
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        for round in first..first + 20 {
            let acknowledged = kill::kill("skills::child", folder.path(), round);
            let (store, _) = open(folder.path());
            list(&store).await;
            for (name, at) in acknowledged
                .iter()
                .rev()
                .take(5)
                .map(|line| line.split_once(' ').unwrap())
            {
                let skill = store.get(&me(), &path(name)).await.unwrap().unwrap();
                let (written, found) = skill.content.split_once('-').unwrap();
                assert_eq!(written, round.to_string(), "{name} is older");
                assert!(
                    found.parse::<u64>().unwrap() >= at.parse().unwrap(),
                    "{name}: {found} instead of {at}"
                );
            }
            assert_eq!(store.damaged(), 0);
        }
        assert!(
            names(folder.path()).iter().all(|name| name.ends_with(".json")),
            "half a file is left"
        );
    }
}
