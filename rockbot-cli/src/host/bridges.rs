//! The MCP servers to which bridges on the agent's bus are connected; the example `mcp_bridge` is
//! such a bridge.

use rockbot::config::Config;
use rockbot::prelude::*;

/// Lets the settings turn these servers on, unless they say something else.
#[cfg(feature = "mcp")]
pub fn configured(config: Config, are_wanted: bool) -> Result<Config, BoxError> {
    Ok(if are_wanted && !config.section("McpProxy")?.is_set() {
        config.with_variables([("ROCKBOT_MCPPROXY__ENABLED", "true")])
    } else {
        config
    })
}

/// Refuses these servers: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub fn configured(config: Config, are_wanted: bool) -> Result<Config, BoxError> {
    if are_wanted {
        Err("the MCP servers of bridges need a build with `--features mcp`".into())
    } else {
        Ok(config)
    }
}
