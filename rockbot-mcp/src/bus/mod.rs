//! MCP servers over a bus: one host is connected to them, and agents on the same bus have their tools.
//!
//! A host with [`McpTools`](crate::McpTools) and [`McpBridge`] announces its servers with a lease (`announcer`), describes
//! them when an agent asks (`manage`), and runs calls that name a server in the header `rb-mcp-server` (`translator`). An
//! agent with [`McpToolProxy`] keeps the announced servers (`directory`), asks for their tools (`fetches`) and takes them in
//! as if it were connected itself (`taking`); its calls go over the bus (`bridge_link`). The messages and topics, most of which are
//! those of the original RockBot, are in `wire`.

mod announcer;
mod bridge;
mod directory;
mod fetches;
mod manage;
mod proxy;
mod settings;
mod taking;
#[cfg(test)]
mod tests;
mod translator;
mod wire;

pub use bridge::McpBridge;
pub use proxy::McpToolProxy;
