//! MCP: the tools of servers of the [Model Context Protocol](https://modelcontextprotocol.io).
//!
//! [`McpTools`] connects an agent to servers: child processes, and servers over HTTP. They come
//! from a file such as `mcp.json`, in the form of common desktop clients, from the section
//! `Mcp` of the configuration, and from code. Each tool becomes a tool of the agent,
//! named `{server}__{tool}`. A server sends text of others: it is bounded, shown defused, and
//! untrusted.
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::mcp::{McpServer, McpTools};
//!
//! fn with_tools_of_servers(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     let time = McpServer::process("time", "uvx").args(["mcp-server-time"]);
//!     builder.add(McpTools::default().server(time)) // or `McpTools::from_file("mcp.json")`
//! }
//! ```
//!
//! With the feature `mcp-server`, `McpToolServer` serves the agent's own tools to MCP clients:
#![cfg_attr(feature = "mcp-server", doc = "```")]
#![cfg_attr(not(feature = "mcp-server"), doc = "```ignore")]
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::mcp::McpToolServer;
//!
//! fn with_tools_for_others(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.add(McpToolServer::new().stdio().tools(["add_note", "search_*"]))
//! }
//! ```
//!
#![doc = include_str!("../docs/mcp.md")]

#[cfg(feature = "mcp-oauth")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp-oauth")))]
#[doc(inline)]
pub use rockbot_mcp::{Authorization, AuthorizationAnswer, AuthorizationHandler};
#[doc(inline)]
pub use rockbot_mcp::{
    Elicitation, ElicitationAnswer, ElicitationField, ElicitationForm, ElicitationHandler, ElicitationInput,
    McpAcceptError, McpBridge, McpConfigError, McpExposure, McpHeldTool, McpServer, McpServerState, McpServerStatus,
    McpServers, McpToolProxy, McpTools, SamplingLimits,
};
#[cfg(feature = "mcp-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp-server")))]
#[doc(inline)]
pub use rockbot_mcp::{McpEndpoint, McpToolServer};
