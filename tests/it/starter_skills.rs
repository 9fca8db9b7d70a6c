//! Guides to tools become skills when a host starts, and are upgraded until a user edits them.

use std::path::Path;
use std::time::Duration;

use rockbot_core::Principal;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{Skill, SkillStore};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::StaticGuide;
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_memory::Memory;
use serde_json::{Value, json};

use crate::support::files::{files, write};
use crate::support::host_of;

/// An agent with skills and nothing else.
fn memory() -> Memory {
    Memory::default().without_long_term().without_working().without_rules()
}

fn host(folder: &Path, model: &ScriptedModel, web: &'static str) -> AgentHostBuilder {
    let guide = StaticGuide::new("web", "Reading\n  pages.", web);
    // Another one: a store without any skills gets all of them.
    let other = StaticGuide::new("mail", "Writing mails.", "Be brief.");
    host_of(model).data_dir(folder).guide(guide).guide(other)
}

/// Starts a host whose guide to the web says `web`, lets `work` do something with it, and stops it.
async fn run(folder: &Path, web: &'static str, work: impl AsyncFnOnce(&AgentHost)) {
    let host = host(folder, &ScriptedModel::new(), web).add(memory()).build().unwrap();
    host.start().await.unwrap();
    work(&host).await;
    host.shutdown(Duration::from_secs(5)).await;
}

async fn skills(host: &AgentHost) -> Vec<Skill> {
    let store = host.parts().get::<dyn SkillStore>().unwrap();
    let skills = store.list(&Principal::default()).await.unwrap();
    skills.iter().map(|skill| (**skill).clone()).collect()
}

/// The text of the skill `web` once a host with this guide has started.
async fn started(folder: &Path, web: &'static str) -> Option<String> {
    let mut text = None;
    run(folder, web, async |host| {
        let skill = skills(host)
            .await
            .into_iter()
            .find(|skill| skill.name.as_str() == "web" && skill.archived_at.is_none());
        text = skill.map(|skill| skill.content);
    })
    .await;
    text
}

/// Has a model call a tool in a host with this guide.
async fn call(folder: &Path, web: &'static str, tool: &str, arguments: Value) {
    let model = ScriptedModel::new().calls(tool, arguments).says("Done.");
    let host = host(folder, &model, web).add(memory()).build().unwrap();
    host.start().await.unwrap();
    let outcome = host.agent().ask("s", "Do it.").await.unwrap();
    assert!(!outcome.calls[0].is_error, "{:?}", outcome.calls);
    host.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn each_guide_becomes_a_skill_that_people_can_read() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "Search first.\n", async |host| {
        let skills = skills(host).await;
        let names: Vec<_> = skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["mail", "web"]);
        assert_eq!(
            (&*skills[1].summary, &*skills[1].content),
            ("Reading pages.", "Search first.")
        );
        assert_eq!(skills[1].provenance.trust, Provenance::HOST.trust);
    })
    .await;
    let document: Value = serde_json::from_str(&files(folder.path())["skills/web.json"]).unwrap();
    let source = document["provenance"]["source"].as_str().unwrap();
    assert!(source.starts_with("guide:"), "{source}");
}

#[tokio::test]
async fn a_starter_skill_is_upgraded_with_its_guide_and_keeps_what_others_wrote_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(started(folder.path(), "Old.").await.as_deref(), Some("Old."));
    let file = folder.path().join("skills/web.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    document["manifest"] = json!([1]);
    document["seeAlso"] = json!(["mail"]);
    write(folder.path(), "skills/web.json", document.to_string());
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("New."));
    let upgraded: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for member in ["manifest", "seeAlso", "createdAt"] {
        assert_eq!(upgraded[member], document[member], "{member}");
    }
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("New."));
    assert_eq!(
        std::fs::metadata(&file).unwrap().modified().unwrap(),
        written,
        "nothing is written anew"
    );
}

#[tokio::test]
async fn what_a_person_or_a_model_changed_stays() {
    let folder = tempfile::tempdir().unwrap();
    started(folder.path(), "Old.").await;
    let file = folder.path().join("skills/web.json");
    let edited = std::fs::read_to_string(&file).unwrap().replace("Old.", "Mine.");
    write(folder.path(), "skills/web.json", edited);
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("Mine."));

    let folder = tempfile::tempdir().unwrap();
    started(folder.path(), "Old.").await;
    let edit = json!({"name": "web", "old_string": "Old", "new_string": "Better"});
    call(folder.path(), "Old.", "edit_skill", edit).await;
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("Better."));
    let same = json!({"name": "web", "content": "New."});
    call(folder.path(), "New.", "save_skill", same).await;
    assert_eq!(started(folder.path(), "Newer.").await.as_deref(), Some("New."));

    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "skills/web.json",
        r#"{"content": "Mine from the first day."}"#,
    );
    assert_eq!(
        started(folder.path(), "Old.").await.as_deref(),
        Some("Mine from the first day.")
    );
}

#[tokio::test]
async fn a_starter_skill_that_was_deleted_stays_so_until_its_guide_changes() {
    let folder = tempfile::tempdir().unwrap();
    started(folder.path(), "Old.").await;
    call(folder.path(), "Old.", "delete_skill", json!({"name": "web"})).await;
    assert_eq!(started(folder.path(), "Old.").await, None);
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("New."));
    std::fs::remove_file(folder.path().join("skills/web.json")).unwrap();
    assert_eq!(started(folder.path(), "New.").await, None);
    // A user who deletes all skills gets them anew, and so does a new store.
    std::fs::remove_dir_all(folder.path().join("skills")).unwrap();
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("New."));
    // What was offered cannot be read: nothing is known to be deleted.
    std::fs::remove_file(folder.path().join("skills/web.json")).unwrap();
    write(folder.path(), "offered-skills/offered.json", "{");
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("New."));
}

#[tokio::test]
async fn one_that_was_edited_while_its_guide_changed_stays_deleted_too() {
    let folder = tempfile::tempdir().unwrap();
    started(folder.path(), "Old.").await;
    let edit = json!({"name": "web", "content": "Mine."});
    call(folder.path(), "Old.", "save_skill", edit).await;
    assert_eq!(started(folder.path(), "New.").await.as_deref(), Some("Mine."));
    call(folder.path(), "New.", "delete_skill", json!({"name": "web"})).await;
    assert_eq!(started(folder.path(), "New.").await, None);
    assert_eq!(started(folder.path(), "Newer.").await.as_deref(), Some("Newer."));
}

#[tokio::test]
async fn a_host_can_do_without_starter_skills_and_without_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new();
    let without = host(folder.path(), &model, "Text.").add(memory().without_starter_skills());
    let without = without.build().unwrap();
    without.start().await.unwrap();
    assert_eq!(skills(&without).await, []);
    assert!(!folder.path().join("offered-skills").exists());
    let in_memory = host_of(&model).add(memory()).build().unwrap();
    in_memory.start().await.unwrap();
    assert_eq!(skills(&in_memory).await, []);
}
