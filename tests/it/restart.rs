//! The restart of a host with a data folder: the turns and conversations that the next process finds.

use rockbot::testing::ScriptedModel;
use rockbot_host::AgentHost;
use std::time::Duration;

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
