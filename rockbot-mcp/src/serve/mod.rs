//! The tools of a host as an MCP server: [`McpToolServer`].
//!
//! `subsystem` is the builder and the running side, `settings` its section of the configuration,
//! `selection` the choice of tools. `handler` answers the requests of a client: the list of tools
//! (`listing`), and calls (`call`), whose results become the protocol's (`result`). `http` is the
//! transport over HTTP with its checks, and `sessions` holds the sessions of clients of the older
//! protocol, in places as connections have them; the transport over standard input and output is
//! the protocol library's, with unique ids of requests (`request_ids`).

mod call;
mod endpoint;
mod handler;
mod http;
mod listing;
mod request_ids;
mod result;
mod selection;
mod sessions;
pub mod settings;
mod subsystem;
#[cfg(test)]
mod tests;

pub use endpoint::McpEndpoint;
pub use subsystem::McpToolServer;
