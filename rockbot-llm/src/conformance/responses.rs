//! Answers as OpenAI's Responses API writes them.

use std::sync::Arc;

use rockbot_core::chat::{ChatClient, FinishReason};
use serde_json::{Value, json};

use super::{Counted, Problem, Script, Wire};
use crate::http::ConnectionOptions;
use crate::responses::{OpenAiResponses, refusal};

pub(super) struct Responses;

impl Wire for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn client(&self, endpoint: &str, change: &dyn Fn(&mut ConnectionOptions)) -> Arc<dyn ChatClient> {
        let builder = OpenAiResponses::builder(endpoint, "m")
            .api_key("key".into())
            .max_attempts(1);
        let mut builder = builder.ids(Arc::new(Counted::default()));
        change(&mut builder.connection);
        Arc::new(builder.build().unwrap())
    }

    fn whole(&self, script: &Script) -> String {
        let output: Vec<_> = items(script).into_iter().map(|(item, _)| item).collect();
        response(script, &output, true).to_string()
    }

    fn events(&self, script: &Script) -> Vec<String> {
        let created = response(script, &[], false);
        let mut events = vec![event("response.created", json!({"response": created}))];
        let items = items(script);
        for (index, (item, pieces)) in items.iter().enumerate() {
            let of_item = |kind: &str, mut data: Value| {
                data["output_index"] = index.into();
                event(kind, data)
            };
            let begun = json!({"item": beginning(item)});
            events.push(of_item("response.output_item.added", begun));
            for (kind, piece) in pieces {
                events.push(of_item(kind, json!({"item_id": item["id"], "delta": piece})));
            }
            events.push(of_item("response.output_item.done", json!({"item": item})));
        }
        let output: Vec<_> = items.into_iter().map(|(item, _)| item).collect();
        let end = response(script, &output, true);
        let kind = format!("response.{}", end["status"].as_str().unwrap());
        events.push(event(&kind, json!({"response": end})));
        events
    }

    fn error(&self, problem: Problem) -> (u16, String) {
        let (status, code, message) = match problem {
            Problem::Overloaded => (503, "server_is_overloaded", "try later"),
            Problem::RateLimited => (429, "rate_limit_exceeded", "slow down"),
            Problem::TooLong => (
                400,
                "context_length_exceeded",
                "Your input exceeds the context window of this model: maximum context length is 200000 tokens, but you requested 213462",
            ),
            Problem::TooLarge => (413, "request_too_large", "too many bytes"),
            Problem::Invalid => (400, "unknown_parameter", "no"),
            Problem::WrongKey => (401, "invalid_api_key", "no"),
            Problem::Forbidden => (403, "permission_denied", "no"),
            Problem::NoCredit => (429, "insufficient_quota", "no"),
            Problem::UnknownModel => (404, "model_not_found", "no"),
            Problem::TookTooLong => (408, "timeout", "no"),
            Problem::Broken => (500, "server_error", "no"),
        };
        let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
        (status, json!({"error": error}).to_string())
    }

    fn error_event(&self, problem: Problem) -> String {
        let (_, body) = self.error(problem);
        let error: Value = serde_json::from_str(&body).unwrap();
        let code = &error["error"]["code"];
        let message = &error["error"]["message"];
        if problem == Problem::Overloaded {
            return event("error", json!({"code": code, "message": message, "param": null}));
        }
        let failed = json!({"status": "failed", "output": [], "error": {"code": code, "message": message}});
        event("response.failed", json!({"response": failed}))
    }

    fn refusal(&self, request: &str) -> Option<String> {
        refusal(request)
    }
}

/// Returns the items of an answer, each with the pieces that stream it: the kind of their events,
/// and the text.
fn items(script: &Script) -> Vec<(Value, Vec<(&'static str, &'static str)>)> {
    let pieces = |kind, texts: &[&'static str]| texts.iter().map(|text| (kind, *text)).collect::<Vec<_>>();
    let mut items = Vec::new();
    if !script.thought.is_empty() {
        let summary = json!([{"type": "summary_text", "text": script.thought.concat()}]);
        let item = json!({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0"});
        items.push((item, pieces("response.reasoning_summary_text.delta", script.thought)));
    }
    if !script.text.is_empty() {
        let part = json!({"type": "output_text", "text": script.text.concat(), "annotations": []});
        let item =
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
        items.push((item, pieces("response.output_text.delta", script.text)));
    }
    for (index, call) in script.calls.iter().enumerate() {
        let item = json!({
            "type": "function_call",
            "id": format!("fc_{index}"),
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments.concat(),
        });
        items.push((item, pieces("response.function_call_arguments.delta", call.arguments)));
    }
    items
}

/// Returns an item as the event of its beginning has it.
fn beginning(item: &Value) -> Value {
    let mut item = item.clone();
    for (member, empty) in [("arguments", json!("")), ("content", json!([])), ("summary", json!([]))] {
        if item.get(member).is_some() {
            item[member] = empty;
        }
    }
    item
}

fn response(script: &Script, output: &[Value], has_ended: bool) -> Value {
    let usage = script.usage.filter(|_| has_ended).map(|[input, cached, output]| {
        json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        })
    });
    let (status, reason) = match end(script) {
        _ if !has_ended => ("in_progress", Value::Null),
        None => ("completed", Value::Null),
        Some(reason) => ("incomplete", json!({"reason": reason})),
    };
    json!({
        "id": "answer-1",
        "object": "response",
        "model": "m-1",
        "status": status,
        "error": null,
        "incomplete_details": reason,
        "output": output,
        "usage": usage,
    })
}

/// Returns the reason why an answer is incomplete, if it is.
fn end(script: &Script) -> Option<&'static str> {
    match script.finish {
        FinishReason::Stop => None,
        FinishReason::ToolCalls if !script.calls.is_empty() => None,
        FinishReason::Length => Some("max_output_tokens"),
        FinishReason::ContentFilter => Some("content_filter"),
        _ => Some("max_tool_calls"),
    }
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}
