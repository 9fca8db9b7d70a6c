//! `mcp_register_server` and `mcp_unregister_server`: servers that a model adds, where the
//! operator allows it.

use std::sync::Arc;

use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolError, ToolErrorCode, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::errors::{running, service};
use crate::config::check_name;
use crate::server::{McpServer, parse_url};
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

/// The servers, and the hosts whose servers may be registered.
#[derive(Debug, Clone)]
struct Registrar {
    servers: McpServers,
    hosts: Arc<[String]>,
}

pub(super) fn tools(servers: &McpServers, hosts: &[String]) -> [Tool; 2] {
    let registrar = Registrar {
        servers: servers.clone(),
        hosts: hosts.into(),
    };
    [
        stateful_tool("mcp_register_server", registrar, register).needs_approval(),
        stateful_tool("mcp_unregister_server", servers.clone(), unregister).idempotent(),
    ]
}

async fn register(registrar: ToolState<Registrar>, args: RegisterServer) -> Result<String, ToolError> {
    if args.command.is_some() {
        let refused = "programs cannot be started by a tool: ask the user to add the server to the configuration";
        return Err(ToolError::new(ToolErrorCode::Denied, refused));
    }
    register_url(&registrar.servers, &registrar.hosts, &args.name, &args.url)
}

/// Connects a server by its URL, if the operator allows its host.
pub(crate) fn register_url(servers: &McpServers, hosts: &[String], name: &str, url: &str) -> Result<String, ToolError> {
    check_name(name).map_err(ToolError::invalid_arguments)?;
    let server = McpServer::http(name, url).map_err(ToolError::invalid_arguments)?;
    admit(hosts, url)?;
    if running(servers)?.connect(server, Origin::Model) {
        Ok(format!("`{name}` is being connected: see mcp_list_services."))
    } else {
        Err(ToolError::invalid_arguments(format!(
            "`{name}` is not added: a server has this name, or there are too many; a server cannot be replaced"
        )))
    }
}

/// Refuses hosts that the operator has not named: any other name may lead into the operator's own
/// network.
fn admit(hosts: &[String], url: &str) -> Result<(), ToolError> {
    let url = parse_url(url).map_err(ToolError::invalid_arguments)?;
    let host = url.host_str().unwrap_or_default();
    if hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    let refused = format!(
        "servers at `{}` cannot be registered: the operator allows these hosts: {}",
        one_line(host),
        hosts.join(", ")
    );
    Err(ToolError::new(ToolErrorCode::Denied, refused))
}

async fn unregister(servers: ToolState<McpServers>, args: UnregisterServer) -> Result<String, ToolError> {
    unregister_server(&servers, &args.server_name)
}

/// Disconnects a server that was connected by its URL at run time.
pub(crate) fn unregister_server(servers: &McpServers, name: &str) -> Result<String, ToolError> {
    let found = service(servers, name)?;
    if found.origin != Origin::Model {
        let refused = format!(
            "`{}` belongs to the operator: only the user can remove it",
            found.server.name()
        );
        return Err(ToolError::new(ToolErrorCode::Denied, refused));
    }
    running(servers)?.bridge.remove(found.server.name());
    Ok(format!("`{}` is disconnected.", found.server.name()))
}
