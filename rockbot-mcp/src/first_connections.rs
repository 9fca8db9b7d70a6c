//! The wait of turns for servers that are being connected when the host starts.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::WaitReason;
use rockbot_core::support::deadline_after;
use rockbot_core::tool::{AwaitedTools, PendingTools};
use tokio::time::Instant;

use crate::servers::McpServers;

/// The servers of a host until each of them is connected or has failed, or the time for that is
/// over.
pub(crate) struct FirstConnections {
    servers: McpServers,
    limit: Duration,
    /// The end of the time, once the host has started.
    until: OnceLock<Instant>,
}

impl FirstConnections {
    /// Creates the wait for `servers`, of at most `limit` from the start of the host.
    pub(crate) fn new(servers: McpServers, limit: Duration) -> Self {
        Self {
            servers,
            limit,
            until: OnceLock::new(),
        }
    }

    /// Begins the time: the servers are being connected from now on.
    pub(crate) fn begin(&self) {
        // A host starts once.
        let _ = self.until.set(deadline_after(Instant::now(), self.limit));
    }
}

#[async_trait]
impl PendingTools for FirstConnections {
    fn awaited(&self) -> Option<AwaitedTools> {
        let until = *self.until.get()?;
        if until <= Instant::now() {
            return None;
        }
        let unsettled = self.servers.runtime()?.bridge.unsettled();
        (!unsettled.is_empty()).then(|| AwaitedTools::new(until, WaitReason::Servers(unsettled)))
    }

    async fn arrived(&self) {
        self.servers.settled().await;
    }
}

impl fmt::Debug for FirstConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstConnections")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
