//! Answers as OpenAI-compatible servers write them.

use std::sync::Arc;

use rockbot_core::chat::{ChatClient, FinishReason};
use serde_json::{Value, json};

use super::{Counted, Problem, Script, ScriptedCall, Wire};
use crate::http::ConnectionOptions;
use crate::openai::OpenAiChat;

pub(super) struct OpenAi;

impl Wire for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn client(&self, endpoint: &str, change: &dyn Fn(&mut ConnectionOptions)) -> Arc<dyn ChatClient> {
        let builder = OpenAiChat::builder(endpoint, "m").api_key("key".into()).max_attempts(1);
        let mut builder = builder.ids(Arc::new(Counted::default()));
        change(&mut builder.connection);
        Arc::new(builder.build().unwrap())
    }

    fn whole(&self, script: &Script) -> String {
        let calls = script.calls.iter().map(|call| entry(call, &call.arguments.concat()));
        let message = json!({
            "role": "assistant",
            "content": script.text.concat(),
            "reasoning_content": script.thought.concat(),
            "tool_calls": calls.collect::<Vec<_>>(),
        });
        let choice = json!({"index": 0, "finish_reason": reason(script.finish), "message": message});
        json!({"id": "answer-1", "model": "m-1", "choices": [choice], "usage": usage(script)}).to_string()
    }

    fn events(&self, script: &Script) -> Vec<String> {
        let mut events = vec![chunk(&json!({"role": "assistant", "content": null}))];
        events.extend(
            script
                .thought
                .iter()
                .map(|text| chunk(&json!({"reasoning_content": text}))),
        );
        events.extend(script.text.iter().map(|text| chunk(&json!({"content": text}))));
        for (index, call) in script.calls.iter().enumerate() {
            let mut first = entry(call, "");
            first["index"] = index.into();
            events.push(chunk(&json!({"tool_calls": [first]})));
            events.extend(
                call.arguments
                    .iter()
                    .map(|piece| chunk(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))),
            );
        }
        let choice = json!({"index": 0, "delta": {}, "finish_reason": reason(script.finish)});
        events.push(event(&json!({"choices": [choice]})));
        events.push(event(&json!({"choices": [], "usage": usage(script)})));
        events.push("data: [DONE]\n\n".into());
        events
    }

    fn error(&self, problem: Problem) -> (u16, String) {
        let (status, code, message) = match problem {
            Problem::Overloaded => (503, "overloaded", "try later"),
            Problem::RateLimited => (429, "rate_limit_exceeded", "slow down"),
            Problem::TooLong => (
                400,
                "context_length_exceeded",
                "maximum context length is 200000 tokens, but you requested 213462",
            ),
            Problem::TooLarge => (413, "request_too_large", "too many bytes"),
            Problem::Invalid => (400, "invalid_value", "no"),
            Problem::WrongKey => (401, "invalid_api_key", "no"),
            Problem::Forbidden => (403, "permission_denied", "no"),
            Problem::NoCredit => (429, "insufficient_quota", "no"),
            Problem::UnknownModel => (404, "model_not_found", "no"),
            Problem::TookTooLong => (408, "timeout", "no"),
            Problem::Broken => (500, "server_error", "no"),
        };
        (status, json!({"error": {"message": message, "code": code}}).to_string())
    }

    fn error_event(&self, problem: Problem) -> String {
        format!("data: {}\n\n", self.error(problem).1)
    }

    fn refusal(&self, request: &str) -> Option<String> {
        let is_known =
            request.starts_with("POST /v1/chat/completions ") && request.contains("\r\nauthorization: Bearer ");
        if !is_known {
            return Some("unknown path or key".to_owned());
        }
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let body: Value = serde_json::from_str(body).expect("a request is JSON");
        refused_messages(body["messages"].as_array().expect("messages")).map(str::to_owned)
    }
}

/// Returns the reason why the strictest templates behind such servers refuse the messages of a
/// request.
fn refused_messages(messages: &[Value]) -> Option<&'static str> {
    let mut last = "";
    let mut open = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "tool" => {
                let call = open.iter().position(|id| *id == message["tool_call_id"]);
                let Some(call) = call else {
                    return Some("a result without its call");
                };
                open.remove(call);
            }
            _ if !open.is_empty() => return Some("a call without its result"),
            "system" if index > 0 => return Some("the system message must come first"),
            // Between the calls of one answer and the next answer there are results, which have a role of
            // their own.
            _ if role == last => return Some("roles must alternate"),
            "assistant" => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                open = calls.map(|call| call["id"].clone()).collect();
                if open.is_empty() && !message["content"].is_string() {
                    return Some("an answer without content");
                }
            }
            _ => {}
        }
        last = role;
    }
    if !open.is_empty() {
        return Some("a call without its result");
    }
    (last == "assistant" || last == "system").then_some("nothing to answer")
}

fn entry(call: &ScriptedCall, arguments: &str) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn chunk(delta: &Value) -> String {
    event(&json!({"id": "answer-1", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        _ => "novel",
    }
}

fn usage(script: &Script) -> Value {
    let Some([input, cached, output]) = script.usage else {
        return Value::Null;
    };
    json!({"prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}})
}
