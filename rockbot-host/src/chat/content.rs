//! Messages of requests and answers in OpenTelemetry's format for spans.

use rockbot_core::chat::{ChatMessage, ChatRequest, ChatResponse, Role, ToolCall};
use serde_json::{Value, json};

/// Serializes the messages of a request as `gen_ai.input.messages`.
pub(super) fn input(request: &ChatRequest) -> String {
    let messages = request.messages.iter().map(|message| message_json(message));
    Value::from_iter(messages).to_string()
}

/// Serializes an answer as `gen_ai.output.messages`.
pub(super) fn output(response: &ChatResponse) -> String {
    let mut message = message_json(&response.to_message());
    message["finish_reason"] = response.finish.name().into();
    json!([message]).to_string()
}

fn message_json(message: &ChatMessage) -> Value {
    let text = message.content.words();
    let parts: Vec<_> = match &message.tool_call_id {
        Some(call) => vec![json!({ "type": "tool_call_response", "id": call, "response": text })],
        None => {
            let thoughts = message.reasoning.as_ref().map(|reasoning| &*reasoning.text);
            let thoughts = thoughts.filter(|text| !text.is_empty());
            let thoughts = thoughts.map(|text| json!({ "type": "reasoning", "content": text }));
            let text = (!text.is_empty()).then(|| json!({ "type": "text", "content": text }));
            let calls = message.tool_calls.iter().map(tool_call);
            thoughts.into_iter().chain(text).chain(calls).collect()
        }
    };
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    json!({ "role": role, "parts": parts })
}

fn tool_call(call: &ToolCall) -> Value {
    // Models may write arguments that are not valid JSON; such arguments are recorded as a string.
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(&*call.arguments));
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
}
