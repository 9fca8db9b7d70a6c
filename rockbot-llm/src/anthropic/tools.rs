//! Definitions of tools, as the Messages API wants them.

use std::borrow::Cow;

use rockbot_core::ToolName;
use rockbot_core::chat::ChatRequest;
use rockbot_core::support::json::push_text;
use serde_json::Value;

use super::shape::ShapeTool;
use crate::http::sendable_name;

/// The mark behind whose block the server caches the request.
pub(super) const CACHE_MARK: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Appends the member `tools`: the tools of `request`, and behind them the tool of the requested
/// shape. Nothing is appended if there is none.
///
/// The mark stands on the last tool of the request, so that requests with and without a shape
/// share their cached prefix.
pub(super) fn push_tools(
    body: &mut Vec<u8>,
    request: &ChatRequest,
    shape: Option<&ShapeTool>,
    is_cached: bool,
) -> Result<(), serde_json::Error> {
    let mut list = ToolList { body, is_empty: true };
    let entries = request.tools.entries();
    for (index, entry) in entries.iter().enumerate() {
        let tool = entry.registration();
        let is_marked = is_cached && index + 1 == entries.len();
        list.push(tool.name.as_str(), &tool.description, entry.parameters(), is_marked);
    }
    if entries.is_empty() {
        // The server refuses calls and results in the history of a request that defines no tool.
        for name in called_names(request) {
            list.push(&sendable_name(name), "", r#"{"type":"object"}"#, false);
        }
    }
    if let Some(shape) = shape {
        let schema = serde_json::to_string(&*input_schema(&shape.schema))?;
        list.push(&shape.name, ShapeTool::DESCRIPTION, &schema, false);
    }
    if !list.is_empty {
        body.push(b']');
    }
    Ok(())
}

/// Returns `true` if the history of `request` has tool calls.
pub(super) fn has_calls(request: &ChatRequest) -> bool {
    request.messages.iter().any(|message| !message.tool_calls.is_empty())
}

fn called_names(request: &ChatRequest) -> Vec<&ToolName> {
    let mut names: Vec<&ToolName> = Vec::new();
    for call in request.messages.iter().flat_map(|message| &message.tool_calls) {
        if !names
            .iter()
            .any(|name| sendable_name(name) == sendable_name(&call.name))
        {
            names.push(&call.name);
        }
    }
    names
}

struct ToolList<'a> {
    body: &'a mut Vec<u8>,
    is_empty: bool,
}

impl ToolList<'_> {
    /// Appends a tool. `schema` is JSON text.
    fn push(&mut self, name: &str, description: &str, schema: &str, is_marked: bool) {
        let before: &[u8] = if self.is_empty { b",\"tools\":[" } else { b"," };
        self.is_empty = false;
        self.body.extend_from_slice(before);
        self.body.extend_from_slice(b"{\"name\":");
        push_text(self.body, [name]);
        if !description.trim().is_empty() {
            self.body.extend_from_slice(b",\"description\":");
            push_text(self.body, [description]);
        }
        self.body.extend_from_slice(b",\"input_schema\":");
        self.body.extend_from_slice(schema.as_bytes());
        if is_marked {
            self.body.extend_from_slice(CACHE_MARK);
        }
        self.body.push(b'}');
    }
}

/// Returns the schema of an answer with its type stated: the server refuses a schema without
/// `"type": "object"`.
fn input_schema(schema: &Value) -> Cow<'_, Value> {
    if schema["type"] == "object" {
        return Cow::Borrowed(schema);
    }
    let mut members = schema.as_object().cloned().unwrap_or_default();
    members.insert("type".into(), "object".into());
    Cow::Owned(members.into())
}
