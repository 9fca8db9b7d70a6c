//! `mcp_get_service_details`: the tools of a server with their schemas.

use rockbot_core::tool::{JsonOutput, Tool, ToolError, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::errors::{listed, service};
use crate::connection::ListedTool;
use crate::entrance;
use crate::naming::tool_name;
use crate::servers::McpServers;

/// Shows the tools of a service with their schemas, or one of them.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetServiceDetails {
    /// The name of the service, as mcp_list_services has it.
    server_name: String,
    /// Only this tool.
    #[serde(default)]
    tool_name: Option<String>,
}

/// A tool as the model reads it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    name: String,
    /// The name for direct calls of the tool.
    typed_name: String,
    description: String,
    parameters_schema: Value,
}

/// An entry of the list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Entry {
    Tool(Details),
    /// A tool or a page of the server's list that cannot be used.
    LeftOut {
        #[serde(rename = "leftOut")]
        left_out: String,
    },
}

pub(super) fn tool(servers: &McpServers) -> Tool {
    stateful_tool("mcp_get_service_details", servers.clone(), details).pure()
}

async fn details(servers: ToolState<McpServers>, args: GetServiceDetails) -> Result<JsonOutput<Vec<Entry>>, ToolError> {
    let service = service(&servers, &args.server_name)?;
    let entry = |tool: ListedTool| {
        Entry::Tool(Details {
            typed_name: tool_name(service.server.name(), &tool.name).to_string(),
            name: tool.name,
            description: tool.description,
            parameters_schema: entrance::schema(&tool.schema),
        })
    };
    if let Some(name) = args.tool_name.as_deref().filter(|name| !name.trim().is_empty()) {
        return Ok(JsonOutput(vec![entry(listed(&service, name)?)]));
    }
    let state = service.state.borrow().clone();
    let tools = state.tools.iter().cloned().map(entry);
    let left_out = state.left_out.iter().map(|left_out| Entry::LeftOut {
        left_out: left_out.what.clone(),
    });
    Ok(JsonOutput(tools.chain(left_out).collect()))
}
