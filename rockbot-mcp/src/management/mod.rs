//! The model's tools about the servers themselves: listing, searching, calling, resources and
//! prompts, registration.

mod details;
mod errors;
mod find;
mod invoke;
mod list;
mod register;
mod resources;

pub(crate) use register::{register_url, unregister_server};
use rockbot_core::tool::{StaticGuide, Tool, ToolGroup};

use crate::servers::McpServers;

/// The name of the group of these tools.
pub(crate) const GROUP: &str = "mcp";

/// The origin of these tools.
const SOURCE: &str = "mcp:management";

/// The guide to these tools.
const GUIDE: &str = include_str!("guide.md");

/// Returns the tools; the tools of registration only if servers of some hosts may be registered.
pub(crate) fn tools(servers: &McpServers, registration_hosts: &[String]) -> Vec<Tool> {
    let group = ToolGroup::new(
        GROUP,
        "find and call the tools of connected services, read their resources",
    );
    let mut tools = vec![
        list::tool(servers),
        details::tool(servers),
        invoke::tool(servers),
        find::tool(servers),
    ];
    tools.extend(resources::tools(servers));
    if !registration_hosts.is_empty() {
        tools.extend(register::tools(servers, registration_hosts));
    }
    let tools = tools.into_iter().map(|tool| tool.source(SOURCE).on_demand(&group));
    tools.collect()
}

/// Returns the guide to these tools.
pub(crate) fn guide() -> StaticGuide {
    StaticGuide::new(
        "mcp-tool-guide",
        "Finding and calling the tools of services (MCP servers).",
        GUIDE,
    )
}
