//! `mcp_list_services`: the servers of the local index.

use rockbot_core::tool::{JsonOutput, Tool, ToolError, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors::running;
use crate::servers::McpServers;
use crate::service::{Link, Service};

/// Maximum number of tools that are named of a server.
const MAX_NAMES: usize = 30;

/// Lists the connected services (MCP servers) with their state and the names of their tools.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListServices {}

/// A server as the model reads it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    server_name: String,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    tool_count: usize,
    tool_names: Vec<String>,
    /// Tools that have changed and wait for the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_tools: Vec<String>,
    /// Tools and pages of their list that cannot be used, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

pub(super) fn tool(servers: &McpServers) -> Tool {
    stateful_tool("mcp_list_services", servers.clone(), list).pure()
}

async fn list(servers: ToolState<McpServers>, _: ListServices) -> Result<JsonOutput<Vec<Summary>>, ToolError> {
    let services = running(&servers)?.bridge.all();
    Ok(JsonOutput(services.iter().map(|service| summary(service)).collect()))
}

fn summary(service: &Service) -> Summary {
    let state = service.state.borrow().clone();
    Summary {
        server_name: service.server.name().to_owned(),
        state: match &state.link {
            Link::Connecting => "connecting".to_owned(),
            Link::Up(_) => "connected".to_owned(),
            Link::Bridged(link) => format!("connected by `{}`", link.bridge),
            Link::Down(reason) => format!("not connected: {reason}"),
        },
        summary: state
            .instructions
            .as_deref()
            .map(|text| text.chars().take(300).collect()),
        tool_count: state.tools.len(),
        left_out: state
            .left_out
            .iter()
            .take(MAX_NAMES)
            .map(|left_out| left_out.what.clone())
            .collect(),
        held_tools: state
            .held
            .iter()
            .take(MAX_NAMES)
            .map(|tool| tool.name.clone())
            .collect(),
        tool_names: state
            .tools
            .iter()
            .take(MAX_NAMES)
            .map(|tool| tool.name.clone())
            .collect(),
    }
}
