//! Announcements: what the agent says unasked, until its user dismisses it.

use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::{Answer, Events, User};
use super::{Serving, server};

async fn dismissed(user: &User, id: &str) -> String {
    let path = format!("/api/announcements/{id}");
    Answer::of(user.request("DELETE", &path).send().await.unwrap())
        .await
        .summary()
}

fn texts(listed: &Value) -> Vec<&str> {
    let all = listed["announcements"].as_array().unwrap().iter();
    all.map(|said| said["text"].as_str().unwrap()).collect()
}

/// Reads the next event as its type, and the text or the id.
async fn next(events: &mut Events) -> String {
    let event = events.next().await.unwrap().data;
    let shown = event["announcement"]["text"].as_str().or(event["id"].as_str());
    format!("{} {}", event["type"].as_str().unwrap(), shown.unwrap_or_default())
}

#[tokio::test]
async fn announcements_stay_until_their_user_dismisses_them() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    let agent = serving.host.agent().for_principal("ann");
    agent.announce("main", "The tea is ready.").await.unwrap();
    agent.announce("main", "The tea is cold.").await.unwrap();

    let listed = ann.get("/api/announcements").await.json();
    assert_eq!(texts(&listed), ["The tea is ready.", "The tea is cold."]);
    assert_eq!(listed["announcements"][0]["session"], "main");
    assert_eq!(
        ann.get("/api/announcements").await.json(),
        listed,
        "reading takes nothing"
    );
    assert_eq!(bob.get("/api/announcements").await.json(), json!({"announcements": []}));

    // Two windows of one user hear the same.
    let path = "/api/announcements/events";
    let mut windows = [ann.events(path, None).await, ann.events(path, None).await];
    for window in &mut windows {
        assert_eq!(next(window).await, "announced The tea is ready.");
        assert_eq!(next(window).await, "announced The tea is cold.");
    }
    let id = listed["announcements"][0]["id"].as_str().unwrap();
    assert_eq!(dismissed(&bob, id).await, "404 not_found");
    assert_eq!(dismissed(&ann, id).await, "204");
    assert_eq!(dismissed(&ann, id).await, "404 not_found");
    agent.announce("main", "More tea?").await.unwrap();
    for window in &mut windows {
        assert_eq!(next(window).await, format!("dismissed {id}"));
        assert_eq!(next(window).await, "announced More tea?");
    }
    let listed = ann.get("/api/announcements").await.json();
    assert_eq!(texts(&listed), ["The tea is cold.", "More tea?"]);

    // A client that lost its connection hears what it has not heard.
    let last = listed["announcements"][0]["id"].as_str().unwrap();
    let mut again = ann.events(path, Some(last)).await;
    assert_eq!(next(&mut again).await, "announced More tea?");
    serving.stop().await;
    assert!(again.next().await.is_none(), "the host that stops ends the stream");
}

#[tokio::test]
async fn a_stream_of_the_program_takes_announcements_out_of_the_list() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let agent = serving.host.agent().for_principal("ann");
    agent.announce("main", "The tea is ready.").await.unwrap();
    let mut stream = agent.announcements();
    assert_eq!(stream.next().await.unwrap().content, "The tea is ready.");
    let ann = serving.ann();
    assert_eq!(texts(&ann.get("/api/announcements").await.json()), [""; 0]);
    // Not dealt with, it waits again.
    drop(stream);
    let listed = ann.get("/api/announcements").await.json();
    assert_eq!(texts(&listed), ["The tea is ready."]);
    serving.stop().await;
}

#[tokio::test]
async fn announcements_that_were_not_dismissed_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let serve = || {
        let host = AgentHost::builder("clerk").data_dir(folder.path());
        Serving::start(host.chat(ScriptedModel::new()).add(server()))
    };
    let serving = serve().await;
    let agent = serving.host.agent().for_principal("ann");
    for text in ["one", "two"] {
        agent.announce("main", text).await.unwrap();
    }
    let listed = serving.ann().get("/api/announcements").await.json();
    let id = listed["announcements"][0]["id"].as_str().unwrap();
    assert_eq!(dismissed(&serving.ann(), id).await, "204");
    drop(agent);
    serving.stop().await;

    let serving = serve().await;
    let listed = serving.ann().get("/api/announcements").await.json();
    assert_eq!(texts(&listed), ["two"]);
    serving.stop().await;
}
