//! Answers as Anthropic's Messages API writes them.

use std::sync::Arc;

use rockbot_core::chat::{ChatClient, FinishReason};
use serde_json::{Value, json};

use super::{Counted, Problem, Script, Wire};
use crate::anthropic::{AnthropicChat, refusal};
use crate::http::ConnectionOptions;

pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn client(&self, endpoint: &str, change: &dyn Fn(&mut ConnectionOptions)) -> Arc<dyn ChatClient> {
        let builder = AnthropicChat::builder(endpoint, "m")
            .api_key("key".into())
            .max_attempts(1);
        let mut builder = builder.ids(Arc::new(Counted::default()));
        change(&mut builder.connection);
        Arc::new(builder.build().unwrap())
    }

    fn whole(&self, script: &Script) -> String {
        let mut content = Vec::new();
        if !script.thought.is_empty() {
            content.push(json!({"type": "thinking", "thinking": script.thought.concat(), "signature": "c2ln"}));
        }
        if !script.text.is_empty() {
            content.push(json!({"type": "text", "text": script.text.concat()}));
        }
        content.extend(script.calls.iter().map(|call| {
            let arguments = call.arguments.concat();
            // The API itself sends objects only; a server that resembles it sends text that is none.
            let input: Value = serde_json::from_str(&arguments).unwrap_or(arguments.into());
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
        }));
        let mut answer = message(&content, script, script.usage.map_or(0, |[_, _, output]| output));
        answer["stop_reason"] = reason(script.finish).into();
        answer.to_string()
    }

    fn events(&self, script: &Script) -> Vec<String> {
        let start = json!({"type": "message_start", "message": message(&[], script, 1)});
        let mut events = vec![event(&start), event(&json!({"type": "ping"}))];
        for (index, (head, deltas)) in blocks(script).into_iter().enumerate() {
            events.push(event(
                &json!({"type": "content_block_start", "index": index, "content_block": head}),
            ));
            events.extend(
                deltas
                    .iter()
                    .map(|delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))),
            );
            events.push(event(&json!({"type": "content_block_stop", "index": index})));
        }
        let usage = script.usage.map(|[_, _, output]| json!({"output_tokens": output}));
        let delta = json!({"stop_reason": reason(script.finish), "stop_sequence": null});
        events.push(event(&json!({"type": "message_delta", "delta": delta, "usage": usage})));
        events.push(event(&json!({"type": "message_stop"})));
        events
    }

    fn error(&self, problem: Problem) -> (u16, String) {
        let (status, kind, message) = match problem {
            Problem::Overloaded => (529, "overloaded_error", "Overloaded"),
            Problem::RateLimited => (429, "rate_limit_error", "slow down"),
            Problem::TooLong => (
                400,
                "invalid_request_error",
                "prompt is too long: 213462 tokens > 200000 maximum",
            ),
            Problem::TooLarge => (413, "request_too_large", "too many bytes"),
            Problem::Invalid => (400, "invalid_request_error", "no"),
            Problem::WrongKey => (401, "authentication_error", "no"),
            Problem::Forbidden => (403, "permission_error", "no"),
            Problem::NoCredit => (400, "billing_error", "no"),
            Problem::UnknownModel => (404, "not_found_error", "no"),
            Problem::TookTooLong => (504, "timeout_error", "no"),
            Problem::Broken => (500, "api_error", "no"),
        };
        let error = json!({"type": kind, "message": message});
        (
            status,
            json!({"type": "error", "error": error, "request_id": "req_1"}).to_string(),
        )
    }

    fn error_event(&self, problem: Problem) -> String {
        format!("event: error\ndata: {}\n\n", self.error(problem).1)
    }

    fn refusal(&self, request: &str) -> Option<String> {
        refusal(request)
    }
}

/// Returns the blocks of a streamed answer: how each begins, and the pieces that follow.
fn blocks(script: &Script) -> Vec<(Value, Vec<Value>)> {
    let mut blocks = Vec::new();
    if !script.thought.is_empty() {
        let thoughts = script
            .thought
            .iter()
            .map(|text| json!({"type": "thinking_delta", "thinking": text}));
        let signature = ["c2", "ln"].map(|piece| json!({"type": "signature_delta", "signature": piece}));
        let head = json!({"type": "thinking", "thinking": "", "signature": ""});
        blocks.push((head, thoughts.chain(signature).collect()));
    }
    if !script.text.is_empty() {
        let words = script
            .text
            .iter()
            .map(|text| json!({"type": "text_delta", "text": text}));
        blocks.push((json!({"type": "text", "text": ""}), words.collect()));
    }
    blocks.extend(script.calls.iter().map(|call| {
        let head = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let pieces = [""].iter().chain(call.arguments);
        let deltas = pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        (head, deltas.collect())
    }));
    blocks
}

fn message(content: &[Value], script: &Script, output: u64) -> Value {
    let usage = script.usage.map(|[input, cached, _]| {
        // The API counts the cached part apart, here half of the rest as written to the cache.
        let written = (input - cached) / 2;
        json!({
            "input_tokens": input - cached - written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": output,
        })
    });
    json!({
        "id": "answer-1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        _ => "pause_turn",
    }
}
