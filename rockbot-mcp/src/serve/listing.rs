//! The list of tools, as clients see it.
//!
//! A page of the served tools goes on behind a name, not at a number: a change of the tools
//! between two pages skips none.

use std::sync::Arc;

use rmcp::model::{ListToolsResult, Tool, ToolAnnotations};
use rockbot_core::tool::{Effect, OutsideTools, ToolEntry, ToolRegistration};
use serde_json::{Map, Value, json};

use super::selection::Selection;

/// Maximum number of tools in a page.
const PAGE: usize = 200;

/// Returns the page of served tools behind the cursor, which is the name of the last tool of the
/// page before: it stays valid when the tools change.
pub(super) fn page(tools: &dyn OutsideTools, selection: &Selection, cursor: Option<&str>) -> ListToolsResult {
    let served = tools.tools();
    let mut left = served
        .iter()
        .filter(|entry| selection.takes(entry.registration()))
        .filter(|entry| cursor.is_none_or(|last| entry.registration().name.as_str() > last));
    let page: Vec<&Arc<ToolEntry>> = left.by_ref().take(PAGE).collect();
    let next = left.next().and(page.last());
    let mut list = ListToolsResult::with_all_items(page.iter().map(|entry| described(entry.registration())).collect());
    list.next_cursor = next.map(|last| last.registration().name.to_string());
    list
}

fn described(tool: &ToolRegistration) -> Tool {
    let name = tool.name.to_string();
    let description = tool.description.clone();
    Tool::new(name, description, Arc::new(schema(tool))).with_annotations(annotations(tool))
}

/// Returns the schema, which the protocol wants to name its type.
fn schema(tool: &ToolRegistration) -> Map<String, Value> {
    let mut schema = tool.parameters_schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    schema
}

/// Returns the effect in the protocol's words. A tool that returns no text of others has a closed
/// world.
fn annotations(tool: &ToolRegistration) -> ToolAnnotations {
    let annotations = match tool.effect {
        Effect::Pure => ToolAnnotations::new().read_only(true),
        Effect::Idempotent => ToolAnnotations::new().read_only(false).idempotent(true),
        Effect::Mutating => ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false),
    };
    if tool.hints.own_output {
        annotations.open_world(false)
    } else {
        annotations
    }
}
