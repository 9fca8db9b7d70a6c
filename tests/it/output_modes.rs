//! The modes of structured output, from the configuration to the wire of each dialect.

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use serde_json::Value;

use crate::support::dialects;
use crate::support::model_server::ModelServer;
use crate::support::weather::{OSLO, Weather, oslo};

/// Answers with a call of the tool that is offered, else in words.
fn answer(raw: &str, request: &Value) -> (u16, String) {
    let tool = &request["tools"][0];
    let name = tool.get("name").unwrap_or(&tool["function"]["name"]).as_str();
    match name {
        Some(name) => dialects::calls(raw, name, OSLO),
        None => dialects::says(raw, OSLO),
    }
}

/// Asks a model of `provider`, whose tier states `mode`, for a typed answer, and returns the
/// request's body.
async fn sent(provider: &str, mode: &str) -> Value {
    let server = ModelServer::start(answer);
    let text = format!(
        r#"
        [LLM.Balanced]
        Provider = "{provider}"
        Endpoint = "{}/v1"
        ApiKey = "k"
        ModelId = "test"
        StructuredOutput = "{mode}"
        "#,
        server.endpoint
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let host = AgentHost::in_memory()
        .chat(ModelGateway::from_config(&config).unwrap())
        .build()
        .unwrap();
    let weather: Weather = host.agent().ask("s", "How cold is Oslo?").output().await.unwrap();
    assert_eq!(weather, oslo());
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    without_marks(&requests.remove(0))
}

/// Replaces the random part of the marks around a note of the host.
fn without_marks(request: &Value) -> Value {
    let text = request.to_string();
    let mark = text.split("[Note ").nth(1).and_then(|rest| rest.split(':').next());
    match mark {
        Some(mark) => serde_json::from_str(&text.replace(mark, "MARK")).unwrap(),
        None => request.clone(),
    }
}

#[tokio::test]
async fn each_dialect_sends_each_mode() {
    for provider in ["openai", "openai-responses", "anthropic"] {
        for mode in ["native", "tool", "prompt"] {
            insta::assert_json_snapshot!(format!("{provider} {mode}"), sent(provider, mode).await);
        }
    }
}
