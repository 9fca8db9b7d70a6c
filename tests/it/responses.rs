//! A whole host over OpenAI's Responses API: real HTTP to a server on the loopback that is as
//! strict as the API.

use std::collections::VecDeque;

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::tool::tool;
use rockbot::turn::{TurnProgress, TurnStatus};
use serde_json::{Value, json};

use crate::responses_rules::refusal;
use crate::support::model_server::ModelServer;
use crate::support::{collect, end_of};

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// Starts a server that gives its answers in order, streamed if the request asks for it: a
/// status, with the items of the output or an error's code.
fn server(answers: impl IntoIterator<Item = (u16, Value)>) -> ModelServer {
    let mut answers: VecDeque<_> = answers.into_iter().collect();
    ModelServer::start(move |raw, request| match (refusal(raw), answers.pop_front()) {
        (Some(why), _) => (400, json!({"error": {"code": null, "message": why}}).to_string()),
        (None, Some((200, items))) if request["stream"] == true => (200, events(&items)),
        (None, Some((200, items))) => (200, response(&items, "completed").to_string()),
        (None, Some((status, code))) => (status, json!({"error": {"code": code, "message": "no"}}).to_string()),
        (None, None) => (500, json!({"error": {"message": "no answer left"}}).to_string()),
    })
}

/// A host that asks `server` in this dialect, configured by the environment.
fn host(server: &ModelServer) -> AgentHost {
    let endpoint = format!("{}/v1", server.endpoint);
    let config = Config::new().with_variables([
        ("ROCKBOT_LLM__BALANCED__PROVIDER", "OpenAIResponses"),
        ("OPENAI_BASE_URL", endpoint.as_str()),
        ("OPENAI_API_KEY", "sk-1234"),
        ("OPENAI_MODEL", "gpt-test"),
    ]);
    AgentHost::in_memory()
        .instructions("Be brief.")
        .chat(ModelGateway::from_config(&config).unwrap())
        .tool(tool("add", |Add { a, b }: Add| async move { a + b }).pure())
        .build()
        .unwrap()
}

fn response(items: &Value, status: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "model": "gpt-test-1", "status": status, "error": null, "output": items,
        "usage": {"input_tokens": 115, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 7}
    })
}

/// The events of an answer, each item in two pieces.
fn events(items: &Value) -> String {
    let mut events = vec![json!({"type": "response.created", "response": response(&json!([]), "in_progress")})];
    for (index, item) in items.as_array().unwrap().iter().enumerate() {
        let (kind, text) = match item["type"].as_str().unwrap() {
            "message" => ("response.output_text.delta", &item["content"][0]["text"]),
            "reasoning" => ("response.reasoning_summary_text.delta", &item["summary"][0]["text"]),
            _ => ("response.function_call_arguments.delta", &item["arguments"]),
        };
        let mut head = item.clone();
        for member in ["content", "summary", "arguments"] {
            if head.get(member).is_some() {
                head[member] = if member == "arguments" { json!("") } else { json!([]) };
            }
        }
        let text = text.as_str().unwrap();
        let (first, rest) = text.split_at(text.len().min(3));
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": head}));
        for delta in [first, rest] {
            events.push(json!({"type": kind, "output_index": index, "delta": delta}));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response(items, "completed")}));
    let named = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    named.collect()
}

fn text(text: &str) -> (u16, Value) {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    (
        200,
        json!([{"type": "message", "id": "msg_1", "role": "assistant", "content": content}]),
    )
}

/// A thought, and two calls at once.
fn thought_and_calls() -> (u16, Value) {
    let call = |number: i64| {
        let arguments = json!({"a": number, "b": 1}).to_string();
        json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "name": "add", "arguments": arguments})
    };
    let summary = json!([{"type": "summary_text", "text": "two sums"}]);
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0"});
    (200, json!([thought, call(1), call(2)]))
}

/// The second request of a turn has the reasoning, both calls and both outputs, and nothing else
/// is new.
fn check_loop(requests: &[Value]) {
    let [first, second] = [&requests[0], &requests[1]];
    assert_eq!(
        [&first["instructions"], &first["tools"]],
        [&second["instructions"], &second["tools"]]
    );
    assert_eq!(
        (&first["store"], &first["tools"][0]["name"]),
        (&json!(false), &json!("add"))
    );
    let before = first["input"].as_array().unwrap();
    let after = second["input"].as_array().unwrap();
    assert_eq!(&after[..before.len()], before);
    let (_, items) = thought_and_calls();
    let mut expected = items.as_array().unwrap().clone();
    for (call, output) in [("call_1", "2"), ("call_2", "3")] {
        expected.push(json!({"type": "function_call_output", "call_id": call, "output": output}));
    }
    assert_eq!(after[before.len()..], expected);
}

#[tokio::test]
async fn an_agent_with_a_tool_asks_it_over_this_dialect() {
    let busy = (503, json!("server_is_overloaded"));
    let server = server([busy, thought_and_calls(), text("2 and 3."), text("You are welcome.")]);
    let host = host(&server);
    let answer = host.agent().ask("s", "1 + 1, and 2 + 1?").await.unwrap();
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (TurnStatus::Answered, "2 and 3.")
    );
    assert_eq!((answer.usage.input, answer.usage.cached), (2 * 115, 2 * 100));
    check_loop(&server.requests()[1..]);

    let answer = host.agent().ask("s", "Thanks!").await.unwrap();
    assert_eq!(answer.text, "You are welcome.");
    let requests = server.requests();
    let asked = requests.last().unwrap()["input"].to_string();
    assert!(
        asked.contains("2 and 3.") && asked.contains("1 + 1, and 2 + 1?"),
        "{asked}"
    );
    assert_eq!(requests.len(), 4);
}

#[tokio::test]
async fn a_streamed_turn_gets_the_pieces() {
    let server = server([thought_and_calls(), text("2 and 3.")]);
    let reports = collect(host(&server).agent().stream("s", "1 + 1, and 2 + 1?")).await;
    let mut words = String::new();
    let mut thoughts = String::new();
    for report in &reports {
        match report {
            TurnProgress::Delta(text) => words.push_str(text),
            TurnProgress::Reasoning(text) => thoughts.push_str(text),
            _ => {}
        }
    }
    assert_eq!((thoughts.as_str(), words.as_str()), ("two sums", "2 and 3."));
    check_loop(&server.requests());
    assert!(server.requests().iter().all(|request| request["stream"] == true));
}

#[tokio::test]
async fn a_refused_key_ends_the_turn_with_the_setting_to_check() {
    let server = server([(401, json!("invalid_api_key"))]);
    let outcome = end_of(host(&server).agent().stream("s", "hi")).await;
    let shown = format!("{outcome:?}");
    assert!(
        shown.contains("check OPENAI_API_KEY") && !shown.contains("sk-1234"),
        "{shown}"
    );
}
