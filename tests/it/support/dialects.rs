//! Answers of a model server in the dialect of the request, which strict servers may refuse.

use serde_json::{Value, json};

use crate::{anthropic_rules, responses_rules};

/// Returns status and text of an answer in words to the request `raw`, or of its refusal.
pub(crate) fn says(raw: &str, text: &str) -> (u16, String) {
    answer(
        raw,
        &json!({"type": "message", "id": "msg_1", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
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

/// Answers with the item of the Responses API, the message of Anthropic's, or the choice of chat
/// completions; as a stream if the request asks for one.
fn answer(raw: &str, item: &Value, message: &Value, choice: &Value) -> (u16, String) {
    let is_streamed = raw.contains(r#""stream":true"#);
    let (refusal, answer) = match raw.split(' ').nth(1) {
        Some("/v1/responses") => (
            responses_rules::refusal(raw),
            if is_streamed {
                responses_events(item)
            } else {
                json!({"status": "completed", "output": [item]}).to_string()
            },
        ),
        Some("/v1/messages") => (
            anthropic_rules::refusal(raw),
            if is_streamed {
                anthropic_events(message)
            } else {
                message.to_string()
            },
        ),
        _ => (
            None,
            if is_streamed {
                openai_events(choice)
            } else {
                json!({"choices": [choice]}).to_string()
            },
        ),
    };
    match refusal {
        Some(why) => (400, json!({"error": {"message": why}}).to_string()),
        None => (200, answer),
    }
}

/// Cuts a text into pieces of a few characters, as a model writes it.
fn pieces(text: &Value) -> Vec<String> {
    let text: Vec<_> = text.as_str().unwrap_or_default().chars().collect();
    text.chunks(5).map(|piece| piece.iter().collect()).collect()
}

fn openai_events(choice: &Value) -> String {
    let message = &choice["message"];
    let reason = &choice["finish_reason"];
    let chunk = |delta: Value, reason: &Value| {
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        format!("data: {chunk}\n\n")
    };
    let mut text: String = pieces(&message["content"])
        .into_iter()
        .map(|piece| chunk(json!({"content": piece}), &Value::Null))
        .collect();
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let mut call = call.clone();
        call["index"] = index.into();
        text += &chunk(json!({"tool_calls": [call]}), &Value::Null);
    }
    text + &chunk(json!({}), reason) + "data: [DONE]\n\n"
}

fn anthropic_events(message: &Value) -> String {
    let start = json!({"type": "message", "role": "assistant", "content": []});
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut head = block.clone();
        let deltas: Vec<_> = if block["type"] == "tool_use" {
            let input = head["input"].take().to_string();
            head["input"] = json!({});
            vec![json!({"type": "input_json_delta", "partial_json": input})]
        } else {
            let text = head["text"].take();
            head["text"] = "".into();
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            pieces(&text).into_iter().map(delta).collect()
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": head}));
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}}));
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

fn responses_events(item: &Value) -> String {
    let mut head = item.clone();
    for (member, empty) in [("content", json!([])), ("arguments", json!(""))] {
        if head.get(member).is_some() {
            head[member] = empty;
        }
    }
    let (kind, text) = if item["type"] == "message" {
        ("response.output_text.delta", &item["content"][0]["text"])
    } else {
        ("response.function_call_arguments.delta", &item["arguments"])
    };
    let mut events = vec![json!({"type": "response.output_item.added", "output_index": 0, "item": head})];
    let delta = |piece| json!({"type": kind, "output_index": 0, "delta": piece});
    events.extend(pieces(text).into_iter().map(delta));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    let response = json!({"status": "completed", "output": [item]});
    events.push(json!({"type": "response.completed", "response": response}));
    named(&events)
}

/// Writes events under the names of their types.
fn named(events: &[Value]) -> String {
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(named).collect()
}
