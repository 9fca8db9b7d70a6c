//! A whole host over Anthropic's dialect: real HTTP to a server on the loopback that is as strict
//! as the API.

use std::collections::VecDeque;

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::tool::tool;
use rockbot::turn::{TurnProgress, TurnStatus};
use serde_json::{Value, json};

use crate::anthropic_rules::refusal;
use crate::support::model_server::ModelServer;
use crate::support::{collect, end_of};

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// A server that gives its answers in order, streamed if the request asks for it.
struct MockServer(ModelServer);

/// An answer: a status, with blocks of content or an error's type.
type MockAnswer = (u16, Value);

impl MockServer {
    fn start(answers: impl IntoIterator<Item = MockAnswer>) -> Self {
        let mut answers: VecDeque<_> = answers.into_iter().collect();
        Self(ModelServer::start(move |raw, request| {
            let (status, content) = match refusal(raw) {
                Some(why) => (400, json!({"type": "invalid_request_error", "message": why})),
                None => answers
                    .pop_front()
                    .unwrap_or((500, json!({"type": "api_error", "message": "no answer left"}))),
            };
            let text = match (status, request["stream"] == true) {
                (200, true) => events(&content),
                (200, false) => message(&content, &reason(&content)).to_string(),
                _ => json!({"type": "error", "error": content}).to_string(),
            };
            (status, text)
        }))
    }

    /// The bodies of the requests so far.
    fn requests(&self) -> Vec<Value> {
        self.0.requests()
    }

    /// A host that asks this server, configured by the environment alone.
    fn host(&self) -> AgentHost {
        let config = Config::new().with_variables([
            ("ANTHROPIC_BASE_URL", self.0.endpoint.as_str()),
            ("ANTHROPIC_API_KEY", "sk-ant-1234"),
            ("ANTHROPIC_MODEL", "claude-test"),
        ]);
        AgentHost::in_memory()
            .instructions("Be brief.")
            .chat(ModelGateway::from_config(&config).unwrap())
            .tool(tool("add", |Add { a, b }: Add| async move { a + b }).pure())
            .build()
            .unwrap()
    }
}

fn message(content: &Value, stop_reason: &Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 7}
    })
}

fn reason(content: &Value) -> Value {
    let calls = content
        .as_array()
        .unwrap()
        .iter()
        .any(|block| block["type"] == "tool_use");
    if calls { "tool_use".into() } else { "end_turn".into() }
}

/// The events of an answer, each block in two pieces.
fn events(content: &Value) -> String {
    let mut events = vec![json!({"type": "message_start", "message": message(&json!([]), &Value::Null)})];
    for (index, block) in content.as_array().unwrap().iter().enumerate() {
        let member = block["type"].as_str().unwrap();
        let (kind, delta) = match member {
            "text" => ("text_delta", "text"),
            "thinking" => ("thinking_delta", "thinking"),
            _ => ("input_json_delta", "partial_json"),
        };
        let mut head = block.clone();
        let text = match member {
            "tool_use" => head["input"].take().to_string(),
            _ => head[delta].take().as_str().unwrap().to_owned(),
        };
        match member {
            "tool_use" => head["input"] = json!({}),
            _ => head[delta] = "".into(),
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": head}));
        let (first, rest) = text.split_at(text.len().min(3));
        for piece in [first, rest] {
            let mut delta_of_block = json!({"type": kind});
            delta_of_block[delta] = piece.into();
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta_of_block}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason(content)}, "usage": {"output_tokens": 7}}),
    );
    events.push(json!({"type": "message_stop"}));
    let named = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    named.collect()
}

fn text(text: &str) -> MockAnswer {
    (200, json!([{"type": "text", "text": text}]))
}

/// A thought, and two calls at once.
fn thought_and_calls() -> MockAnswer {
    let call = |id: &str, a: i64| json!({"type": "tool_use", "id": id, "name": "add", "input": {"a": a, "b": 1}});
    let thought = json!({"type": "thinking", "thinking": "two sums", "signature": "c2ln"});
    (200, json!([thought, call("toolu_1", 1), call("toolu_2", 2)]))
}

/// The second request of a turn has the thought, both calls and both results, and nothing else is
/// new.
fn check_loop(requests: &[Value]) {
    let blocks = |message: &Value| message["content"].as_array().unwrap().clone();
    let [first, second] = [&requests[0], &requests[1]];
    assert_eq!(first["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(
        [&first["system"], &first["tools"]],
        [&second["system"], &second["tools"]],
        "the cached prefix"
    );
    let messages = second["messages"].as_array().unwrap();
    let [answer, results] = messages.last_chunk().unwrap();
    let (_, content) = thought_and_calls();
    assert_eq!(json!(blocks(answer)), content);
    let results: Vec<_> = blocks(results)
        .into_iter()
        .filter(|block| block["type"] == "tool_result")
        .collect();
    let told: Vec<_> = results
        .iter()
        .map(|block| (&block["tool_use_id"], &block["content"]))
        .collect();
    assert_eq!(
        told,
        [(&json!("toolu_1"), &json!("2")), (&json!("toolu_2"), &json!("3"))]
    );
}

#[tokio::test]
async fn an_agent_with_a_tool_asks_it_over_this_dialect() {
    let busy = (529, json!({"type": "overloaded_error", "message": "Overloaded"}));
    let server = MockServer::start([busy, thought_and_calls(), text("2 and 3."), text("You are welcome.")]);
    let host = server.host();
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
    let asked = requests.last().unwrap()["messages"].to_string();
    assert!(
        asked.contains("2 and 3.") && asked.contains("1 + 1, and 2 + 1?"),
        "{asked}"
    );
    assert_eq!(requests.len(), 4);
}

#[tokio::test]
async fn a_failed_call_is_marked() {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "nothing", "input": {}});
    let server = MockServer::start([(200, json!([call])), text("Well.")]);
    let answer = server.host().agent().ask("s", "Go!").await.unwrap();
    assert_eq!(answer.text, "Well.");
    let requests = server.requests();
    let results = &requests[1]["messages"].as_array().unwrap().last().unwrap()["content"];
    assert_eq!(
        (&results[0]["tool_use_id"], &results[0]["is_error"]),
        (&json!("toolu_1"), &json!(true))
    );
}

#[tokio::test]
async fn a_streamed_turn_gets_the_pieces() {
    let server = MockServer::start([thought_and_calls(), text("2 and 3.")]);
    let host = server.host();
    let reports = collect(host.agent().stream("s", "1 + 1, and 2 + 1?")).await;
    let pieces: String = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::Delta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let thoughts: String = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::Reasoning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((thoughts.as_str(), pieces.as_str()), ("two sums", "2 and 3."));
    check_loop(&server.requests());
    assert!(server.requests().iter().all(|request| request["stream"] == true));
}

#[tokio::test]
async fn a_refused_key_ends_the_turn_with_the_setting_to_check() {
    let server = MockServer::start([(
        401,
        json!({"type": "authentication_error", "message": "invalid x-api-key"}),
    )]);
    let outcome = end_of(server.host().agent().stream("s", "hi")).await;
    let shown = format!("{outcome:?}");
    assert!(
        shown.contains("check ANTHROPIC_API_KEY") && !shown.contains("sk-ant-1234"),
        "{shown}"
    );
}
