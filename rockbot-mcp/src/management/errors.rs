//! Errors that name the existing servers and tools, so that a model finds its way.

use std::sync::Arc;

use rockbot_core::support::{loggable, nearest_names, one_line};
use rockbot_core::tool::ToolError;

use crate::connection::{LeftOut, ListedTool};
use crate::runtime::Runtime;
use crate::servers::McpServers;
use crate::service::Service;

/// Maximum number of names that an error lists.
const MAX_NAMES: usize = 40;

/// Returns the running servers.
pub(super) fn running(servers: &McpServers) -> Result<Arc<Runtime>, ToolError> {
    let stopped = || ToolError::execution_failed("no MCP server is connected: the host has not started or is stopping");
    servers.runtime().ok_or_else(stopped)
}

/// Returns the server of this name.
pub(super) fn service(servers: &McpServers, name: &str) -> Result<Arc<Service>, ToolError> {
    let bridge = running(servers)?.bridge.clone();
    bridge.find(name.trim()).ok_or_else(|| {
        let all = bridge.all();
        let names: Vec<_> = all.iter().map(|service| service.server.name()).collect();
        unknown("MCP server", name, &names, "see mcp_list_services")
    })
}

/// Returns the tool of this name; its case does not matter.
pub(super) fn listed(service: &Service, name: &str) -> Result<ListedTool, ToolError> {
    let tools = service.state.borrow().tools.clone();
    let is_named = |tool: &&ListedTool| tool.name == name.trim();
    let is_similar = |tool: &&ListedTool| tool.name.eq_ignore_ascii_case(name.trim());
    let found = tools.iter().find(is_named).or_else(|| tools.iter().find(is_similar));
    found.cloned().ok_or_else(|| {
        let left_out = service.state.borrow().left_out.clone();
        let is_left_out = |left_out: &&LeftOut| left_out.tool.as_deref() == Some(name.trim());
        if let Some(LeftOut { what, .. }) = left_out.iter().find(is_left_out) {
            let server = service.server.name();
            return ToolError::invalid_arguments(format!("of `{server}` is left out {what}"));
        }
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        unknown(
            &format!("tool of `{}`", service.server.name()),
            name,
            &names,
            "see mcp_get_service_details",
        )
    })
}

/// Returns the error of a name that there is not, with the nearest ones and the first of all.
fn unknown(what: &str, name: &str, known: &[&str], advice: &str) -> ToolError {
    let near = nearest_names(name, known.iter().copied(), 3);
    let meant = if near.is_empty() {
        String::new()
    } else {
        format!(" Did you mean {}?", quoted(&near))
    };
    let all = match known.len() {
        0 => "There is none.".to_owned(),
        1..=MAX_NAMES => format!("There are: {}.", quoted(known)),
        more => format!("There are {more}, such as: {}; {advice}.", quoted(&known[..MAX_NAMES])),
    };
    ToolError::invalid_arguments(format!("there is no {what} named `{}`.{meant} {all}", loggable(name)))
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", one_line(name))).collect();
    names.join(", ")
}
