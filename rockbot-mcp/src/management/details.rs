//! `mcp_get_service_details`: the tools of a server with their schemas.

use rockbot_core::tool::{Json, State, Tool, ToolError, stateful_tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::errors::{listed, service};
use crate::connection::ListedTool;
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
    /// The name under which the tool is called directly.
    typed_name: String,
    description: String,
    parameters_schema: Value,
}

pub(super) fn tool(servers: &McpServers) -> Tool {
    stateful_tool("mcp_get_service_details", servers.clone(), details).pure()
}

async fn details(servers: State<McpServers>, args: GetServiceDetails) -> Result<Json<Vec<Details>>, ToolError> {
    let service = service(&servers, &args.server_name)?;
    let tools = match args.tool_name.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => vec![listed(&service, name)?],
        None => service.state.borrow().tools.to_vec(),
    };
    let details = |tool: ListedTool| Details {
        typed_name: tool_name(service.server.name(), &tool.name).to_string(),
        name: tool.name,
        description: tool.description,
        parameters_schema: tool.schema,
    };
    Ok(Json(tools.into_iter().map(details).collect()))
}
