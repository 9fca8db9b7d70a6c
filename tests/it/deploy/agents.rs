//! The agents of `deploy/agents`.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::folder;
use crate::example_programs::{OFFLINE, PATIENCE, example, text};
use crate::support::files;

/// Copies one of the agents of `deploy/agents`.
fn copied(agent: &str) -> tempfile::TempDir {
    let copied = tempfile::tempdir().unwrap();
    files::copy(&folder().join("agents").join(agent), copied.path(), None);
    copied
}

/// Each agent is sound as it stands in its folder, and has the parts that it is for.
#[tokio::test]
async fn the_agents_to_copy_are_sound() {
    for (agent, parts) in [
        ("research", ["web", "files", "subagents"]),
        ("patrol", ["rest", "scheduling", "web server"]),
        ("support", ["rest", "feedback", "web server"]),
    ] {
        let copied = copied(agent);
        let doctor = ["--config", "agent.toml", "doctor"];
        let output = example("chat", &doctor, copied.path())
            .env(OFFLINE.0, OFFLINE.1)
            .output()
            .await
            .unwrap();
        let told = text(&output.stdout);
        assert!(output.status.success(), "{agent}: {told}");
        let warnings: Vec<_> = told.lines().filter(|line| !line.starts_with("ok ")).collect();
        assert_eq!(
            warnings,
            ["warning  Balanced: it is the built-in offline model, which is not an LLM"],
            "{agent}"
        );
        for part in parts {
            let is_listed = told.lines().any(|line| line.contains("part: ") && line.contains(part));
            assert!(is_listed, "{agent} has {part}: {told}");
        }
        rockbot::eval::Dataset::read(copied.path().join("cases.jsonl")).unwrap();
    }
}

/// The desk answers a customer over HTTP who signs in with a token of the settings.
#[tokio::test]
async fn the_support_desk_answers_customers_over_http() {
    let copied = copied("support");
    let mut desk = example(
        "chat",
        &["serve", "--port", "0", "--config", "agent.toml"],
        copied.path(),
    )
    .envs([OFFLINE, ("ROCKBOT_WEBSERVER__ADDRESS", "127.0.0.1:0")])
    .stderr(Stdio::piped())
    .kill_on_drop(true)
    .spawn()
    .unwrap();
    let mut lines = BufReader::new(desk.stderr.take().unwrap()).lines();
    let url = loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .expect("it runs");
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["message"] == "the agent is served to people and their programs" {
            break line["url"].as_str().unwrap().to_owned();
        }
    };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |token: &str| {
        let url = format!("{}/api/sessions/main/messages", url.trim_end_matches('/'));
        let message = client
            .post(url)
            .bearer_auth(token)
            .header("content-type", "application/json");
        message
            .header("accept", "text/event-stream")
            .body(r#"{"content": "What is 6 * 7?"}"#)
            .send()
            .await
            .unwrap()
    };
    let events = ask("change-me-ann").await.text().await.unwrap();
    assert!(events.contains("42"), "{events}");
    assert_eq!(ask("guessed").await.status(), 401);
}
