//! `mcp_register_server` and `mcp_unregister_server`: servers that a model adds, where the operator allows it.

use rockbot_core::tool::{State, Tool, ToolError, ToolErrorCode, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::errors::{running, service};
use crate::config::check_name;
use crate::server::McpServer;
use crate::servers::McpServers;
use crate::service::Origin;

/// Connects a service (MCP server) by its URL, until the agent ends. The user approves it first.
#[derive(Debug, Deserialize, JsonSchema)]
struct RegisterServer {
    /// A new name for the service.
    name: String,
    /// The URL, such as https://example.com/mcp.
    url: String,
    /// Programs cannot be started: leave this out.
    #[serde(default)]
    #[schemars(skip)]
    command: Option<Value>,
}

/// Disconnects a service that mcp_register_server has connected.
#[derive(Debug, Deserialize, JsonSchema)]
struct UnregisterServer {
    /// The name of the service.
    server_name: String,
}

pub(super) fn tools(servers: &McpServers) -> [Tool; 2] {
    [
        stateful_tool("mcp_register_server", servers.clone(), register).needs_approval(),
        stateful_tool("mcp_unregister_server", servers.clone(), unregister).idempotent(),
    ]
}

async fn register(servers: State<McpServers>, args: RegisterServer) -> Result<String, ToolError> {
    if args.command.is_some() {
        let refused = "programs cannot be started by a tool: ask the user to add the server to the configuration";
        return Err(ToolError::new(ToolErrorCode::Denied, refused));
    }
    check_name(&args.name).map_err(ToolError::invalid_arguments)?;
    let server = McpServer::http(&args.name, &args.url).map_err(ToolError::invalid_arguments)?;
    match running(&servers)?.connect(server, Origin::Model) {
        true => Ok(format!("`{}` is being connected: see mcp_list_services.", args.name)),
        false => Err(ToolError::invalid_arguments(format!(
            "`{}` is not added: a server has this name, or there are too many; a server cannot be replaced",
            args.name
        ))),
    }
}

async fn unregister(servers: State<McpServers>, args: UnregisterServer) -> Result<String, ToolError> {
    let found = service(&servers, &args.server_name)?;
    if found.origin != Origin::Model {
        let refused = format!(
            "`{}` belongs to the operator: only the user can remove it",
            found.server.name()
        );
        return Err(ToolError::new(ToolErrorCode::Denied, refused));
    }
    running(&servers)?.bridge.remove(found.server.name());
    Ok(format!("`{}` is disconnected.", found.server.name()))
}
