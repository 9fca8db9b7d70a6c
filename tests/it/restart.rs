//! The restart of a host with a data folder: the turns and conversations that the next process
//! finds.

use std::sync::Arc;
use std::time::Duration;

use rockbot::chat::ChatClient;
use rockbot::testing::ScriptedModel;
use rockbot_core::testing::mock_tool;
use rockbot_host::AgentHost;
use rockbot_memory::Memory;
use serde_json::json;

use crate::support::{settle, transcript};

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let run = async |model: &ScriptedModel, text: &str| {
        let host = AgentHost::builder("clerk")
            .instructions("You are clerk.")
            .chat(model.clone())
            .data_dir(folder.path())
            .build()
            .unwrap();
        host.agent().ask("s", text).await.unwrap();
        host.shutdown(Duration::from_secs(5)).await;
    };
    run(&ScriptedModel::new().says("Hello, Ada."), "I am Ada.").await;
    let model = ScriptedModel::new().says("You are Ada.");
    run(&model, "Who am I?").await;
    let texts: Vec<_> = model.requests()[0]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts, ["You are clerk.", "I am Ada.", "Hello, Ada.", "Who am I?"]);
    let document = std::fs::read_to_string(folder.path().join("conversations/s.json")).unwrap();
    assert!(
        document.contains(r#""content":"You are Ada.""#),
        "folded when the host stopped: {document}"
    );
}

#[tokio::test]
async fn a_turn_that_is_resumed_does_not_block_another_session() {
    let folder = tempfile::tempdir().unwrap();
    let run = |model: &ScriptedModel| {
        let (work, handle) = mock_tool("work");
        let host = AgentHost::builder("clerk").chat(model.clone()).tool(work.pure());
        (host.data_dir(folder.path()).build().unwrap(), handle)
    };
    let (stopped, _handle) = run(&ScriptedModel::new().calls("work", json!({})));
    let agent = stopped.agent().clone();
    let asked = tokio::spawn(async move { agent.ask("old", "Work.").await });
    settle().await;
    drop(stopped);
    asked.await.unwrap().unwrap_err();

    // The tool never answers, so the turn that is resumed goes on for as long as the host lives.
    let (host, _handle) = run(&ScriptedModel::new().says("Hello."));
    let resumed = host.start().await.unwrap();
    assert_eq!((resumed.running.len(), resumed.parked.len()), (1, 0));
    let answer = host.agent().ask("new", "Hi.").await.unwrap();
    assert_eq!(answer.text, "Hello.");
    let cut = tokio::time::timeout(Duration::ZERO, host.agent().outcome(&resumed.running[0])).await;
    assert!(cut.is_err(), "the resumed turn still runs");
}

/// The model of a test lives on, and with it the requests that it was sent and the tools in them.
async fn check_that_it_remembers(is_started: bool, is_shut_down: bool) {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new()
        .calls("save_memory", json!({"content": "Ada likes green tea."}))
        .says("Noted.")
        .says("Green tea.");
    let open = async || {
        let host = AgentHost::builder("clerk")
            .chat(model.clone())
            .add(Memory::default())
            .give::<dyn ChatClient>(Arc::new(ScriptedModel::new()))
            .data_dir(folder.path())
            .build()
            .unwrap();
        if is_started {
            host.start().await.unwrap();
        }
        host
    };
    let host = open().await;
    host.agent().ask("s", "I like green tea.").await.unwrap();
    if is_shut_down {
        host.shutdown(Duration::from_secs(5)).await;
    }
    drop(host);
    if is_started && !is_shut_down {
        // The runtime drops the tasks of its subsystems.
        settle().await;
    }

    let host = open().await;
    assert_eq!(
        host.agent().ask("t", "What do I like?").await.unwrap().text,
        "Green tea."
    );
    let shown = transcript(model.requests().last().unwrap()).join("\n");
    assert!(shown.contains("Ada likes green tea."), "{shown}");
}

#[tokio::test]
async fn the_next_host_remembers_after_a_shutdown() {
    check_that_it_remembers(false, true).await;
    check_that_it_remembers(true, true).await;
}

#[tokio::test]
async fn the_next_host_remembers_after_the_first_was_dropped() {
    check_that_it_remembers(false, false).await;
    check_that_it_remembers(true, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_host_remembers_on_a_runtime_with_threads() {
    check_that_it_remembers(true, true).await;
}
