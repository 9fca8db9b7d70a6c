//! The modes of structured output, from the configuration to the wire of each dialect.

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;
use crate::{anthropic_rules, responses_rules};

/// The weather in a place.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    celsius: i32,
}

const OSLO: &str = r#"{"city":"Oslo","celsius":-3}"#;

/// Answers with a call of the tool that is offered, else in words, as the dialect does.
fn answer(raw: &str, request: &Value) -> (u16, String) {
    let tool = request["tools"][0].clone();
    let by_tool = !tool.is_null();
    let name = tool.get("name").unwrap_or(&tool["function"]["name"]);
    let arguments: Value = serde_json::from_str(OSLO).unwrap();
    let (refusal, answer) = match raw.split(' ').nth(1) {
        Some("/v1/responses") => {
            let item = match by_tool {
                true => json!({"type": "function_call", "call_id": "c", "name": name, "arguments": OSLO}),
                false => json!({"type": "message", "id": "m", "role": "assistant",
                    "content": [{"type": "output_text", "text": OSLO}]}),
            };
            (
                responses_rules::refusal(raw),
                json!({"status": "completed", "output": [item]}),
            )
        }
        Some("/v1/messages") => {
            let (block, reason) = match by_tool {
                true => (
                    json!({"type": "tool_use", "id": "c", "name": name, "input": arguments}),
                    "tool_use",
                ),
                false => (json!({"type": "text", "text": OSLO}), "end_turn"),
            };
            (
                anthropic_rules::refusal(raw),
                json!({"content": [block], "stop_reason": reason}),
            )
        }
        _ => {
            let function = json!({"name": name, "arguments": OSLO});
            let (message, reason) = match by_tool {
                true => (
                    json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}),
                    "tool_calls",
                ),
                false => (json!({"role": "assistant", "content": OSLO}), "stop"),
            };
            (
                None,
                json!({"choices": [{"message": message, "finish_reason": reason}]}),
            )
        }
    };
    match refusal {
        Some(why) => (400, json!({"error": {"message": why}}).to_string()),
        None => (200, answer.to_string()),
    }
}

/// Asks a model of `provider`, whose tier states `mode`, for a typed answer, and returns the request's body.
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
    let expected = Weather {
        city: "Oslo".to_owned(),
        celsius: -3,
    };
    assert_eq!(weather, expected);
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    without_marks(&requests.remove(0))
}

/// Replaces the random part of the marks around a note of the host.
fn without_marks(request: &Value) -> Value {
    let text = request.to_string();
    let mark = text
        .split("<system_note ")
        .nth(1)
        .and_then(|rest| rest.split('>').next());
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
