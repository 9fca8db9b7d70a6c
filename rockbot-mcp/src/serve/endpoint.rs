//! The part of a host that tells the program where its tools are served.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use rockbot_core::context::CancellationToken;

/// The place where a host's tools are served. Cheap to clone.
///
/// A host with [`McpToolServer`](super::McpToolServer) provides it as a part.
#[derive(Debug, Clone, Default)]
pub struct McpEndpoint {
    pub(super) address: Arc<OnceLock<SocketAddr>>,
    pub(super) closed: CancellationToken,
}

impl McpEndpoint {
    /// Returns the address that the server listens at, or `None` before the host has started, and for a server that serves
    /// standard input alone. Its URL is `http://ADDRESS/mcp`.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    /// Waits until the client at standard input has gone, as clients end the servers that they
    /// started; never returns for a server over HTTP alone before the host stops.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}
