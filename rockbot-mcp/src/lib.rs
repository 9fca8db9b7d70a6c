//! Tools of servers of the [Model Context Protocol](https://modelcontextprotocol.io) for agents of the rockbot
//! framework.
//!
//! [`McpTools`] is the subsystem: it connects to each [`McpServer`] of a configuration, in
//! parallel and without delaying the host's start, and registers the server's tools as tools of
//! the agent, with their own schemas. With [`McpServers`] the program sees and changes the
//! connected servers while the host runs.
//!
//! ```
//! use rockbot_core::subsystem::Subsystem as _;
//! use rockbot_mcp::{McpServer, McpTools};
//!
//! let time = McpServer::process("time", "uvx").args(["mcp-server-time"]);
//! let tools = McpTools::default().server(time); // for `AgentHostBuilder::add`
//! assert_eq!(tools.name(), "mcp");
//! ```
//!
//! While a tool runs, its server may ask for input of the user ([`ElicitationHandler`]) and for
//! answers of the host's model ([`SamplingLimits`]); a host refuses both unless it is told
//! otherwise.
//!
//! A server over HTTP may demand that the user authorizes the agent by OAuth (feature `oauth`):
//! an `AuthorizationHandler` of the host sends the user to the page.
//!
//! The other way round, [`McpToolServer`] serves the tools of a host to MCP clients (feature
//! `server`).
//!
//! A server sends data of another program: descriptions are defused before a model reads them,
//! results are untrusted, annotations grant nothing, and everything is bounded. A definition that
//! changes after it was first seen is held back until the operator [accepts](McpServers::accept)
//! it. A server that the operator vouches for is marked by [`McpServer::trusted`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod audit;
mod bridge;
mod bridge_link;
mod bus;
mod catalog;
mod config;
mod connection;
mod content;
mod entrance;
mod exposure;
mod first_connections;
mod index_event;
mod management;
mod naming;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(feature = "oauth")]
mod oauth_settings;
mod pins;
mod reload;
mod requests;
mod runtime;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod serve;
mod server;
mod servers;
mod service;
pub mod settings;
mod subsystem;
mod supervisor;
#[cfg(test)]
mod tests;
mod tool_call;
mod tool_index;
mod transport_error;

pub use bus::{McpBridge, McpToolProxy};
pub use config::{ConfigProblem, McpConfigError};
pub use exposure::McpExposure;
pub use index_event::{McpBridgeLease, McpServerSummary, McpServersIndexed};
#[cfg(feature = "oauth")]
#[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
pub use oauth::{Authorization, AuthorizationAnswer, AuthorizationHandler, CredentialStore, InMemoryCredentials};
#[cfg(feature = "oauth")]
#[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
pub use oauth_settings::McpOAuth;
pub use requests::{
    Elicitation, ElicitationAnswer, ElicitationField, ElicitationForm, ElicitationHandler, ElicitationInput,
    ElicitationKind, SamplingLimits, SamplingOrigin,
};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{McpEndpoint, McpToolServer};
pub use server::McpServer;
pub use servers::{McpAcceptError, McpHeldTool, McpServerState, McpServerStatus, McpServers, UnknownServer};
pub use subsystem::McpTools;
