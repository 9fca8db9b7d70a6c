//! Serving the agent's own tools to MCP clients: the option `--serve-mcp ADDRESS`.

use rockbot::config::Config;
use rockbot::prelude::*;

/// Adds the address to the settings, and all tools unless `McpServer.Tools` names some.
#[cfg(feature = "mcp-server")]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    let Some(address) = address else {
        return Ok(config);
    };
    with_tools(config.with_variables([("ROCKBOT_MCPSERVER__ADDRESS", address)]))
}

/// Serves over standard input and output instead, all tools unless `McpServer.Tools` names some.
#[cfg(feature = "mcp-server")]
pub(crate) fn on_stdio(config: Config) -> Result<Config, BoxError> {
    with_tools(config.with_variables([("ROCKBOT_MCPSERVER__STDIO", "true")]))
}

#[cfg(feature = "mcp-server")]
fn with_tools(config: Config) -> Result<Config, BoxError> {
    let names_tools = config.section("McpServer")?.setting("Tools").is_some();
    Ok(if names_tools {
        config
    } else {
        config.with_variables([("ROCKBOT_MCPSERVER__TOOLS", "*")])
    })
}

/// Refuses the address: the program was built without an MCP server.
#[cfg(not(feature = "mcp-server"))]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    match address {
        Some(_) => Err("serving tools over MCP needs a build with `--features mcp-server`".into()),
        None => Ok(config),
    }
}

/// Returns the URL at which a started host serves its tools, if it does.
#[cfg(feature = "mcp-server")]
pub fn url(host: &AgentHost) -> Option<String> {
    let endpoint = host.parts().get::<rockbot::mcp::McpEndpoint>()?;
    Some(format!("http://{}/mcp", endpoint.address()?))
}

/// Returns nothing: the program was built without an MCP server.
#[cfg(not(feature = "mcp-server"))]
pub fn url(_: &AgentHost) -> Option<String> {
    None
}
