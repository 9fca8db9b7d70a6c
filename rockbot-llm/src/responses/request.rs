//! The request as the Responses API wants it, written straight into bytes.

use rockbot_core::chat::{ChatError, ChatRequest, ModelSettings, OutputSchema, ToolChoice};
use rockbot_core::support::json::push_text;
use serde::Serialize;
use serde_json::{Value, json};

use super::input::push_conversation;
use crate::http::{Question, expected_size, invalid_body, push_extra, stated_temperature};

/// The fewest tokens of an answer that the API lets a request limit it to.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// Writes the body that asks `model` for an answer to `request`, streamed or whole, with
/// `settings`. Unset members are left out.
pub(super) fn body(question: Question<'_>, keeps_reasoning: bool) -> Result<Vec<u8>, ChatError> {
    let Question {
        model,
        request,
        settings,
        scope,
        is_streamed,
        ..
    } = question;
    let members = Members {
        include: if keeps_reasoning {
            &["reasoning.encrypted_content"]
        } else {
            &[]
        },
        stream: is_streamed.then_some(true),
        ..members(model, request, settings)
    };
    let mut body = Vec::with_capacity(expected_size(request));
    serde_json::to_writer(&mut body, &members).map_err(invalid_body)?;
    push_extra(&mut body, &settings.extra_body)?;
    // The rest goes in front of the closing brace.
    body.pop();
    let takes_media = settings.images.unwrap_or(true);
    push_conversation(&mut body, &request.messages, takes_media, scope).map_err(invalid_body)?;
    push_tools(&mut body, request, settings.strict_tools == Some(true));
    body.push(b'}');
    Ok(body)
}

#[derive(Serialize)]
struct Members<'a> {
    model: &'a str,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

/// Returns the members that follow from `request` and `settings`; the API has neither a seed nor
/// stop sequences.
fn members<'a>(model: &'a str, request: &ChatRequest, settings: &ModelSettings) -> Members<'a> {
    let has_tools = !request.tools.is_empty();
    let effort = settings.reasoning_effort.as_ref();
    Members {
        model,
        store: false,
        include: &[],
        max_output_tokens: settings.max_output_tokens.map(|limit| limit.max(MIN_OUTPUT_TOKENS)),
        temperature: stated_temperature(model, settings.temperature),
        top_p: settings.top_p,
        reasoning: effort.map(|effort| json!({ "effort": effort.as_str() })),
        text: request.output.as_ref().map(text_format),
        // The server rejects both without tools.
        tool_choice: settings
            .tool_choice
            .as_ref()
            .filter(|_| has_tools)
            .and_then(tool_choice),
        parallel_tool_calls: settings.parallel_tool_calls.filter(|_| has_tools),
        stream: None,
    }
}

/// Returns the member `tool_choice`. `Auto` is left out: it is the default.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn text_format(output: &OutputSchema) -> Value {
    json!({ "format": { "type": "json_schema", "name": output.name, "schema": output.schema } })
}

/// Appends the member `tools`, if there are any. Unless told otherwise, the API rewrites the
/// schema of a tool for strict mode itself, where each argument is required: so each tool states
/// its mode.
fn push_tools(body: &mut Vec<u8>, request: &ChatRequest, is_strict: bool) {
    for (index, entry) in request.tools.entries().iter().enumerate() {
        let tool = entry.registration();
        let before: &[u8] = if index == 0 { b",\"tools\":[" } else { b"," };
        body.extend_from_slice(before);
        body.extend_from_slice(b"{\"type\":\"function\",\"name\":");
        push_text(body, [tool.name.as_str()]);
        if !tool.description.trim().is_empty() {
            body.extend_from_slice(b",\"description\":");
            push_text(body, [&*tool.description]);
        }
        let strict = is_strict.then(|| entry.strict_schema().ok()).flatten();
        let (mode, parameters): (&[u8], _) = match strict {
            Some(schema) => (b"true", schema.text()),
            None => (b"false", entry.parameters()),
        };
        body.extend_from_slice(b",\"strict\":");
        body.extend_from_slice(mode);
        body.extend_from_slice(b",\"parameters\":");
        body.extend_from_slice(parameters.as_bytes());
        body.push(b'}');
    }
    if !request.tools.is_empty() {
        body.push(b']');
    }
}
