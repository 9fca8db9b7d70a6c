//! Answers of a model server in the dialect of the request, which strict servers may refuse.

use serde_json::{Value, json};

use crate::{anthropic_rules, responses_rules};

/// Returns status and text of an answer in words to the request `raw`, or of its refusal.
pub(crate) fn says(raw: &str, text: &str) -> (u16, String) {
    answer(
        raw,
        &json!({"type": "message", "id": "msg_1", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}),
        &json!({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}),
        &json!({"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}),
    )
}

/// Returns status and text of an answer that calls a tool, or of its refusal.
pub(crate) fn calls(raw: &str, name: &str, arguments: &str) -> (u16, String) {
    let input: Value = serde_json::from_str(arguments).unwrap();
    let call = json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}});
    answer(
        raw,
        &json!({"type": "function_call", "call_id": "c", "name": name, "arguments": arguments}),
        &json!({"content": [{"type": "tool_use", "id": "c", "name": name, "input": input}], "stop_reason": "tool_use"}),
        &json!({"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}),
    )
}

/// Answers with the item of the Responses API, the message of Anthropic's, or the choice of chat completions.
fn answer(raw: &str, item: &Value, message: &Value, choice: &Value) -> (u16, String) {
    let (refusal, answer) = match raw.split(' ').nth(1) {
        Some("/v1/responses") => (
            responses_rules::refusal(raw),
            json!({"status": "completed", "output": [item]}),
        ),
        Some("/v1/messages") => (anthropic_rules::refusal(raw), message.clone()),
        _ => (None, json!({"choices": [choice]})),
    };
    match refusal {
        Some(why) => (400, json!({"error": {"message": why}}).to_string()),
        None => (200, answer.to_string()),
    }
}
