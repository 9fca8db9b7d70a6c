//! The restart of a host with a data folder: the turns and conversations that the next process finds.

use std::time::Duration;

use rockbot::testing::ScriptedModel;
use rockbot_core::testing::mock_tool;
use rockbot_host::AgentHost;
use serde_json::json;

use crate::support::settle;

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
