//! Model settings, from the configuration to the wire of each dialect.

use rockbot::agent::AgentHost;
use rockbot::chat::{ModelBehaviors, ModelGateway, ModelSettings};
use rockbot::config::Config;
use rockbot::testing::mock_tool;
use rockbot::turn::{TurnPolicies, TurnRequest};
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;
use crate::support::{Notes, dialects};

/// Asks a model of `provider` with settings of its tier, of its behavior and of the request, and
/// returns what was sent besides the conversation and the tools.
async fn sent(provider: &str) -> Value {
    let server = ModelServer::start(|raw, _| dialects::says(raw, "Yes."));
    let text = format!(
        r#"
        [LLM.Balanced]
        Provider = "{provider}"
        Endpoint = "{}/v1"
        ApiKey = "k"
        ModelId = "gpt-test"
        Temperature = 1.0
        TopP = 0.5
        MaxOutputTokens = 2000
        Seed = 7
        StopSequences = ["END"]
        ParallelToolCalls = false
        [LLM.Balanced.ExtraBody.metadata]
        run = "1"
        [ModelBehaviors.Models.gpt]
        TopP = 0.25
        Temperature = 0.75
        ReasoningEffort = "low"
        "#,
        server.endpoint
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let host = AgentHost::in_memory()
        .chat(ModelGateway::from_config(&config).unwrap())
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
        .tool(mock_tool("look").0)
        .build()
        .unwrap();
    let own = ModelSettings::new().with_temperature(0.0);
    let request = TurnRequest::new("s", "1", "Is it?").with_model_settings(own);
    assert_eq!(host.agent().run(request).await.unwrap().text, "Yes.");
    let mut body = server.requests().remove(0);
    for member in ["messages", "system", "input", "instructions", "tools"] {
        body.as_object_mut().unwrap().remove(member);
    }
    body
}

#[tokio::test]
async fn chat_completions_get_all_of_them() {
    let expected = json!({
        "model": "gpt-test",
        "max_completion_tokens": 2000,
        "temperature": 0.0,
        "top_p": 0.25,
        "seed": 7,
        "stop": ["END"],
        "reasoning_effort": "low",
        "parallel_tool_calls": false,
        "metadata": {"run": "1"},
    });
    assert_eq!(sent("openai").await, expected);
}

#[tokio::test]
async fn the_responses_api_gets_all_but_seed_and_stop_sequences() {
    let expected = json!({
        "model": "gpt-test",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 2000,
        "temperature": 0.0,
        "top_p": 0.25,
        "reasoning": {"effort": "low"},
        "parallel_tool_calls": false,
        "metadata": {"run": "1"},
    });
    assert_eq!(sent("openai-responses").await, expected);
}

#[tokio::test]
async fn anthropic_thinks_in_place_of_sampling() {
    let expected = json!({
        "model": "gpt-test",
        "max_tokens": 2000 + 4096,
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "metadata": {"run": "1"},
    });
    assert_eq!(sent("anthropic").await, expected);
}

#[tokio::test]
async fn headers_of_tier_behavior_and_request_reach_each_dialect() {
    for provider in ["openai", "openai-responses", "anthropic"] {
        let heads = Notes::default();
        let seen = heads.clone();
        let server = ModelServer::start(move |raw, _| {
            seen.add(raw.split("\r\n\r\n").next().unwrap());
            dialects::says(raw, "Yes.")
        });
        let text = format!(
            r#"
            [LLM.Balanced]
            Provider = "{provider}"
            Endpoint = "{}/v1"
            ApiKey = "k"
            ModelId = "gpt-test"
            ExtraHeaders = {{ x-of = "tier", x-tier = "1" }}
            [ModelBehaviors.Models.gpt]
            ExtraHeaders = {{ x-of = "behavior", x-behavior = "2" }}
            "#,
            server.endpoint
        );
        let config = Config::new().with_text("agent.toml", &text).unwrap();
        let host = AgentHost::in_memory()
            .chat(ModelGateway::from_config(&config).unwrap())
            .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
            .build()
            .unwrap();
        let own = ModelSettings::new()
            .with_extra_header("x-of", "request")
            .with_extra_header("x-request", "3");
        host.agent().ask("s", "Is it?").model_settings(own).await.unwrap();
        let head = heads.all().remove(0);
        for header in ["x-of: request", "x-tier: 1", "x-behavior: 2", "x-request: 3"] {
            assert!(head.contains(header), "{provider}: {header} is missing in {head}");
        }
        assert_eq!(head.matches("x-of: ").count(), 1, "{provider}: {head}");
    }
}
