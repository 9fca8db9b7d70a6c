//! Particular models are treated in particular ways.

use rockbot::testing::{ScriptedModel, mock_tool};
use rockbot_core::chat::{ModelSettings, ToolChoice};
use rockbot_core::config::Config;
use rockbot_core::context::Origin;
use rockbot_core::tool::tool;
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use rockbot_host::behavior::ModelBehaviors;
use rockbot_host::{AgentHost, TurnError, TurnPolicies};

use crate::support::{Anything, transcript};

const SETTINGS: &str = r#"{ "ModelBehaviors": { "Models": { "deepseek": {
    "AdditionalSystemPrompt": "Be brief.",
    "PreToolLoopPrompt": "Look first.",
    "NudgeOnHallucinatedToolCalls": true
} } } }"#;

/// Runs a turn whose first answer claims something, and returns the requests to a model with this
/// id.
async fn asked(id: &str) -> Vec<Vec<String>> {
    let model = ScriptedModel::new()
        .with_id(id)
        .says("I have created it.")
        .says("I did nothing.");
    let config = Config::new().with_text("agent.json", SETTINGS).unwrap();
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .instructions("You are agent.")
        .tool(mock_tool("create").0)
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
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
    assert_eq!(asked("gpt-4.1").await[0], ["You are agent.", "Create it."]);
}

/// Runs a turn of a model that calls tools in text, and returns its end.
async fn asked_in_text(model: &ScriptedModel) -> TurnOutcome {
    let text = r#"{ "ModelBehaviors": { "Models": { "old": { "UseTextBasedToolCalling": true } } } }"#;
    let config = Config::new().with_text("agent.json", text).unwrap();
    let look = tool("look", |_: Anything| async { "a chair" })
        .description("Looks around.")
        .pure();
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .instructions("You are agent.")
        .tool(look)
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
        .build()
        .unwrap();
    host.agent().ask("s", "Is it there?").await.unwrap()
}

#[tokio::test]
async fn a_model_without_native_calls_calls_in_text() {
    let model = ScriptedModel::new()
        .with_id("old-model")
        .says("Let me look.\n\ntool_call_name: look\ntool_call_arguments: {\"n\": 1,}")
        .says("It is there.");
    let outcome = asked_in_text(&model).await;
    assert_eq!((outcome.text.as_str(), outcome.calls.len()), ("It is there.", 1));
    let requests = model.requests();
    assert!(
        requests.iter().all(|request| request.tools.is_empty()),
        "no native tools"
    );
    let texts: Vec<_> = requests[1]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert!(
        texts[1].contains("tool_call_name:") && texts[1].contains("look"),
        "{}",
        texts[1]
    );
    assert_eq!(
        texts[2..],
        [
            "Is it there?",
            "Let me look.\n\ntool_call_name: look\ntool_call_arguments: {\"n\":1}",
            "[Tool result for look]: a chair\n\nNow answer in plain words, or call another tool if one is needed.",
        ]
    );
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_taught_once() {
    let model = ScriptedModel::new()
        .with_id("old-model")
        .says("tool_call_name: loook\ntool_call_arguments: {}")
        .says("I cannot look.");
    let outcome = asked_in_text(&model).await;
    assert_eq!((outcome.text.as_str(), outcome.usage.total()), ("I cannot look.", 30));
    let told = model.requests()[1].messages.last().unwrap().text().into_owned();
    assert!(told.contains("loook") && told.contains("look"), "{told}");
}

/// Runs a turn of this origin, and returns the extra messages that a model of this mode receives.
async fn told_besides(mode: &str, origin: Origin) -> Vec<String> {
    let text =
        format!(r#"{{ "ModelBehaviors": {{ "Models": {{ "gpt": {{ "ScheduledTaskResultMode": "{mode}" }} }} }} }}"#);
    let config = Config::new().with_text("agent.json", &text).unwrap();
    let model = ScriptedModel::new().with_id("gpt-4.1").says("All is well.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .instructions("You are agent.")
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
        .build()
        .unwrap();
    let request = TurnRequest::new("patrol/mail", "m", "Look at the mail.").with_origin(origin);
    host.agent().run(request).await.unwrap();
    let asked = transcript(&model.requests()[0]);
    assert_eq!(asked.first().unwrap(), "system: You are agent.");
    assert_eq!(asked.last().unwrap(), "user: Look at the mail.");
    asked[1..asked.len() - 1].to_vec()
}

#[tokio::test]
async fn a_scheduled_turn_tells_its_results_as_the_model_is_told_to() {
    let verbatim = "user: The last message is a task. Answer it with what your tools return, word for word and \
        complete: no summary, and nothing before or after it.";
    let both = "user: The last message is a task. Answer it with a summary, a blank line, and then what your \
        tools return, word for word and complete.";
    assert_eq!(told_besides("VerbatimOutput", Origin::Scheduled).await, [verbatim]);
    assert_eq!(told_besides("SummarizeWithOutput", Origin::Scheduled).await, [both]);
    for (mode, origin) in [("Summarize", Origin::Scheduled), ("VerbatimOutput", Origin::User)] {
        assert_eq!(told_besides(mode, origin).await, [""; 0], "{mode}");
    }
}

#[tokio::test]
async fn settings_of_a_request_win_over_those_of_the_models_behavior() {
    let text = r#"{ "ModelBehaviors": { "Models": { "gpt": { "Temperature": 0.5, "Seed": 7 } } } }"#;
    let config = Config::new().with_text("agent.json", text).unwrap();
    let model = ScriptedModel::new().with_id("gpt-4.1").says("One.").says("Two.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .instructions("You are agent.")
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
        .build()
        .unwrap();
    assert_eq!(config.check_unknown().unwrap(), []);
    let plain = TurnRequest::new("s", "1", "Hi!");
    let own = TurnRequest::new("s", "2", "Hi!").with_model_settings(ModelSettings::new().with_temperature(0.0));
    for request in [plain, own] {
        host.agent().run(request).await.unwrap();
    }
    let asked = model
        .requests()
        .into_iter()
        .map(|request| request.settings.clone().unwrap());
    let expected = [0.5, 0.0].map(|temperature| ModelSettings::new().with_seed(7).with_temperature(temperature));
    assert_eq!(asked.map(|settings| (*settings).clone()).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_forced_call_is_forced_once() {
    let model = ScriptedModel::new()
        .calls("create", serde_json::json!({}))
        .says("Done.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .instructions("You are agent.")
        .tool(mock_tool("create").0)
        .build()
        .unwrap();
    let settings = ModelSettings::new().with_seed(7).with_tool_choice(ToolChoice::Required);
    let request = TurnRequest::new("s", "1", "What is new?").with_model_settings(settings.clone());
    assert_eq!(host.agent().run(request).await.unwrap().text, "Done.");
    let requests = model.requests();
    assert_eq!(requests[0].settings.as_deref(), Some(&settings));
    assert_eq!(
        requests[1].settings.as_deref(),
        Some(&ModelSettings::new().with_seed(7))
    );
}

#[tokio::test]
async fn an_invalid_setting_is_refused_before_the_turn_begins() {
    let host = AgentHost::in_memory().chat(ScriptedModel::new()).build().unwrap();
    let request =
        TurnRequest::new("s", "1", "Hi!").with_model_settings(ModelSettings::new().with_temperature(f32::NAN));
    let error = host.agent().run(request).await.unwrap_err();
    assert!(
        matches!(&error, TurnError::ModelSettings(error) if error.setting() == "temperature"),
        "{error}"
    );
}
