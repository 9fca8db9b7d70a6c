//! The MCP servers of the chat: those of a file, and what is said of them.

use std::path::Path;

use rockbot::agent::AgentHost;
use rockbot::config::Config;
use rockbot::prelude::*;

#[cfg(feature = "mcp")]
use crate::terminal;

/// Adds the servers of `file` to the settings.
#[cfg(feature = "mcp")]
pub(crate) fn configured(config: Config, file: Option<&Path>) -> Result<Config, BoxError> {
    let Some(file) = file else {
        return Ok(config);
    };
    let path = std::path::absolute(file)?;
    let path = path.to_str().ok_or("the path of the MCP servers is no text")?;
    Ok(config.with_variables([("ROCKBOT_MCP__CONFIGPATH", path)]))
}

/// Refuses the file: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) fn configured(config: Config, file: Option<&Path>) -> Result<Config, BoxError> {
    match file {
        Some(_) => Err("MCP servers need a build with `--features mcp`".into()),
        None => Ok(config),
    }
}

/// Waits until the servers are connected or have failed, so that the first question has their tools, and reports those
/// that have failed.
#[cfg(feature = "mcp")]
pub(crate) async fn connected(host: &AgentHost) {
    use rockbot::mcp::{McpServerState, McpServers};

    let Some(servers) = host.parts().get::<McpServers>() else {
        return;
    };
    servers.settled().await;
    for server in servers.list() {
        match server.state {
            McpServerState::Failed(reason) => eprintln!("MCP server `{}` is not connected: {reason}", server.name),
            _ => eprintln!("MCP server `{}`: {} tools", server.name, server.tools.len()),
        }
        if !server.held.is_empty() {
            let held = terminal::clean(&server.held.join(", "));
            eprintln!(
                "tools of `{}` have changed: {held}; `/accept {}` accepts them",
                server.name, server.name
            );
        }
    }
}

/// Does nothing: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) async fn connected(_: &AgentHost) {}

/// Accepts the changed tools of a server.
#[cfg(feature = "mcp")]
pub(crate) fn accept(host: &AgentHost, server: &str) {
    let servers = host.parts().get::<rockbot::mcp::McpServers>().unwrap_or_default();
    match servers.accept(server) {
        Ok(()) => eprintln!("accepted"),
        Err(error) => eprintln!("{error}"),
    }
}

/// Reports that there is no server: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) fn accept(_: &AgentHost, _: &str) {
    eprintln!("MCP servers need a build with `--features mcp`");
}
