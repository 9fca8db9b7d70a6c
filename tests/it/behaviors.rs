//! Particular models are treated in particular ways.

use rockbot::testing::{ScriptedModel, mock_tool};
use rockbot_core::config::Config;
use rockbot_host::AgentHost;
use rockbot_host::behavior::ModelBehaviors;

const SETTINGS: &str = r#"{ "ModelBehaviors": { "Models": { "deepseek": {
    "AdditionalSystemPrompt": "Be brief.",
    "PreToolLoopPrompt": "Look first.",
    "NudgeOnHallucinatedToolCalls": true
} } } }"#;

/// What a model with this id is asked in a turn in which it first claims something.
async fn asked(id: &str) -> Vec<Vec<String>> {
    let model = ScriptedModel::new()
        .with_id(id)
        .says("I have created it.")
        .says("I did nothing.");
    let config = Config::new().with_text("agent.json", SETTINGS).unwrap();
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(mock_tool("create").0)
        .model_behaviors(ModelBehaviors::read(&config).unwrap())
        .build()
        .unwrap();
    host.agent().ask("s", "Create it.").await.unwrap();
    let texts = |request: &std::sync::Arc<rockbot_core::chat::ChatRequest>| {
        request
            .messages
            .iter()
            .map(|message| message.text().into_owned())
            .collect()
    };
    model.requests().iter().map(texts).collect()
}

#[tokio::test]
async fn a_model_is_told_and_corrected_as_its_behavior_says() {
    let requests = asked("openrouter/deepseek-v3").await;
    assert_eq!(
        requests[0],
        ["You are agent.", "Be brief.", "Create it.", "Look first."]
    );
    assert_eq!(requests.len(), 2, "the claim was answered with a nudge");
    assert_eq!(requests[1][requests[1].len() - 1], "Look first.");
    assert_eq!(
        requests[1].iter().filter(|text| *text == "Look first.").count(),
        1,
        "it stands at the end only"
    );
}

#[tokio::test]
async fn other_models_are_left_alone() {
    assert_eq!(asked("gpt-4.1").await, [["You are agent.", "Create it."]]);
}
