//! MCP servers over a bus: one host is connected to them, and agents on the same bus have their
//! tools.
//!
//! A host with [`McpTools`](crate::McpTools) and [`McpBridge`] announces its servers with a lease
//! (`announcer`), describes them when an agent asks (`manage`), and runs calls that name a server
//! in the header `rb-mcp-server` (`translator`). An agent with [`McpToolProxy`] keeps the
//! announced servers (`directory`), asks for their tools (`fetches`) and takes them in as if it
//! were connected itself (`taking`); its calls go over the bus (`bridge_link`). The messages and
//! topics are in `wire`; most of them are the original RockBot's.
//!
//! MCP servers over the bus (`bus/`). A bridge announces its servers under `tool.meta.mcp.NAME`
//! with a lease, as workers announce tools, and takes calls under `tool.invoke.mcp.NAME` and, in
//! one queue with all other bridges, under `tool.invoke.mcp`. The host translates a call into a
//! call of `mcp_invoke_tool` (`CallTranslator`) before it looks up the tool, so guard, ledger and
//! questions about outcomes work as for all calls of other programs. A call that was delivered
//! before and fits no tool gets the outcome in the ledger, or an unknown outcome. An agent asks
//! for the tools of a server when the digest in the index differs from the digest of the tools
//! that it has. It asks each bridge one question at a time. Its servers are services like
//! connected ones, with another link, so pins, exposure and the tools about servers are the same.

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
