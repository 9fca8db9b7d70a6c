//! The list of a server's tools: all pages, within bounds.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::Peer;
use rockbot_core::Digest;
use rockbot_core::support::loggable;
use rockbot_core::tool::{ArgumentSchema, Effect};
use serde_json::Value;
use tokio::time::timeout;

use super::{ConnectError, text_of};
use crate::server::McpServer;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 64;

/// Maximum number of tools of a server.
pub(crate) const MAX_TOOLS: usize = 1_000;

/// Maximum length of the name of a tool, in bytes.
pub(crate) const MAX_NAME: usize = 256;

/// Maximum length of a description, in bytes. The rest is cut.
pub(crate) const MAX_DESCRIPTION: usize = 2_000;

/// A tool as its server describes it, within bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedTool {
    /// The name on the wire.
    pub(crate) name: String,
    pub(crate) description: String,
    /// The description as the server sent it, if it is longer.
    pub(crate) sent: Option<Arc<str>>,
    pub(crate) schema: Value,
    /// The effect that the server claims.
    pub(crate) claimed: Effect,
    /// The digest of the definition as the server sent it.
    pub(crate) fingerprint: Digest,
}

/// Lists the tools that the agent may have. What exceeds a bound is left out, with a warning.
pub(crate) async fn list_tools(
    peer: &Peer<RoleClient>,
    server: &McpServer,
    limit: Duration,
) -> Result<Vec<ListedTool>, ConnectError> {
    match timeout(limit, pages(peer, server)).await {
        Ok(tools) => tools,
        Err(_) => Err(ConnectError::NoTools(format!("no answer within {limit:?}"))),
    }
}

async fn pages(peer: &Peer<RoleClient>, server: &McpServer) -> Result<Vec<ListedTool>, ConnectError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let request = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(request)).await;
        let page = page.map_err(|error| ConnectError::NoTools(text_of(&error)))?;
        tools.extend(page.tools.iter().filter_map(|tool| listed(tool, server)));
        // An empty cursor is a cursor.
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    if cursor.is_some() || tools.len() > MAX_TOOLS {
        let server = server.name();
        tracing::warn!(
            server,
            "an MCP server lists too many tools: those beyond {MAX_TOOLS} are left out"
        );
    }
    tools.truncate(MAX_TOOLS);
    let mut names = std::collections::HashSet::new();
    tools.retain(|tool| names.insert(tool.name.clone()));
    Ok(tools)
}

/// Returns the tool, or `None` if the agent may not have it or it cannot be used.
fn listed(tool: &Tool, server: &McpServer) -> Option<ListedTool> {
    let name = tool.name.as_ref();
    if !server.admits(name) {
        return None;
    }
    let schema = Value::Object((*tool.input_schema).clone());
    let problem = match ArgumentSchema::compile(&schema) {
        _ if name.is_empty() || name.len() > MAX_NAME => "its name is empty or too long".to_owned(),
        Err(error) => error.to_string(),
        Ok(_) => {
            return Some(ListedTool {
                sent: (text_of_tool(tool).len() > MAX_DESCRIPTION).then(|| text_of_tool(tool).into()),
                description: description(tool),
                claimed: claimed_effect(tool),
                fingerprint: Digest::of([serde_json::to_vec(tool).unwrap_or_default()]),
                name: name.to_owned(),
                schema,
            });
        }
    };
    let (server, name) = (server.name(), loggable(name));
    tracing::warn!(server, tool = %name, problem = %loggable(&problem), "a tool of an MCP server is left out");
    None
}

fn text_of_tool(tool: &Tool) -> &str {
    let text = tool.description.as_deref().or(tool.title.as_deref());
    text.unwrap_or_default()
}

fn description(tool: &Tool) -> String {
    let text = text_of_tool(tool);
    match text.len() > MAX_DESCRIPTION {
        true => format!("{}… (cut)", &text[..text.floor_char_boundary(MAX_DESCRIPTION)]),
        false => text.to_owned(),
    }
}

/// Returns the effect that the annotations claim. They are hints, so it counts only for trusted servers.
fn claimed_effect(tool: &Tool) -> Effect {
    match &tool.annotations {
        Some(hints) if hints.read_only_hint == Some(true) => Effect::Pure,
        Some(hints) if hints.is_idempotent() => Effect::Idempotent,
        _ => Effect::Mutating,
    }
}

#[cfg(test)]
impl ListedTool {
    /// Returns a tool with this description.
    pub(crate) fn for_test(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            sent: None,
            schema: serde_json::json!({"type": "object"}),
            claimed: Effect::Mutating,
            fingerprint: Digest::of([name, description]),
        }
    }
}
