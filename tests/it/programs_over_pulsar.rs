//! The examples as programs that are connected by Pulsar.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rockbot::tool_services::DescriptorFolder;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::example_programs::{OFFLINE, PATIENCE, example, run, text};
use crate::pulsar_lite::PulsarLite;

const TOOL: &str = include_str!("../../examples/joke_service/tell-joke.json");

/// Starts an example, and waits until it has printed a line with these words.
async fn start(name: &str, arguments: &[&str], folder: &Path, words: &str) -> Child {
    let mut child = example(name, arguments, folder)
        .envs([OFFLINE])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let log = child.stderr.take().unwrap();
    let ready = async {
        tokio::select! { () = printed(out, words) => {}, () = printed(log, words) => {} }
    };
    timeout(PATIENCE, ready).await.expect("it becomes ready");
    child
}

/// Waits for a line with these words. The rest is read, so that the program never waits for its
/// reader.
async fn printed(output: impl AsyncRead + Unpin + Send + 'static, words: &str) {
    let mut lines = BufReader::new(output).lines();
    loop {
        match lines.next_line().await.unwrap() {
            Some(line) if line.contains(words) => break,
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
}

#[tokio::test]
async fn the_chat_talks_to_the_full_agent() {
    let Some(lite) = PulsarLite::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("pulsar://127.0.0.1:{}", lite.port);
    let arguments = ["--port", "0", "--bus", &url];
    let mut agent = start("full_agent", &arguments, folder.path(), "\"ready\"").await;
    let note = r#"Take a note: "buy milk""#;
    let output = run("chat", &["--bus", &url, note], folder.path()).await;
    agent.kill().await.unwrap();
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`take_note` says:\nNoted.\n"), "{answer}");
}

#[tokio::test]
async fn an_agent_its_tool_and_its_user_are_three_processes() {
    let Some(lite) = PulsarLite::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("pulsar://127.0.0.1:{}", lite.port);
    let output = run(
        "distributed",
        &["--bus", &url, "--ask", "What is 6 * 7?"],
        folder.path(),
    )
    .await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`calculate` says:\n42\n"), "{answer}");
    for part in ["worker", "agent"] {
        assert!(told.contains(&format!("the {part} is process ")), "{told}");
    }
}

#[tokio::test]
async fn agents_in_other_processes_have_the_tool_of_a_service() {
    let Some(lite) = PulsarLite::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("pulsar://127.0.0.1:{}", lite.port);
    let mut service = start("joke_service", &["--bus", &url], folder.path(), "ready").await;
    let descriptors = folder.path().join("descriptors");
    let put = DescriptorFolder::new(&descriptors);
    let described = r#"{ "id": "joke-service", "topic": "joke", "config-params": ["style"] }"#;
    put.put("tool-service/joke-service", described).unwrap();
    put.put("tool/tell-joke", TOOL).unwrap();
    let config = folder.path().join("agent.toml");
    std::fs::write(
        &config,
        format!("[Pulsar]\nHostName = \"127.0.0.1\"\nPort = {}\n", lite.port),
    )
    .unwrap();
    let config = config.to_str().unwrap();
    let descriptors = descriptors.to_str().unwrap();
    let question = "Tell a joke, topic \"animals\"";
    let output = run(
        "chat",
        &["--config", config, "--tool-services", descriptors, question],
        folder.path(),
    )
    .await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    let joke = "Why do cats make bad storytellers? They only have one tail.\n";
    assert!(output.status.success() && answer.ends_with(joke), "{answer}\n{told}");

    // The end of its standard input ends the service.
    drop(service.stdin.take());
    assert!(
        timeout(Duration::from_secs(30), service.wait())
            .await
            .unwrap()
            .unwrap()
            .success()
    );
}
