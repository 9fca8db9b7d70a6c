//! The running side of a server: its tasks, and their end.

use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::CancellationToken;
use rockbot_core::subsystem::Running;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Time for open answers to end when the host stops.
const CLOSING: Duration = Duration::from_secs(5);

/// The tasks of a server. Dropping it ends them, as when a host is dropped without a stop.
#[derive(Debug)]
pub struct Serving {
    /// Ends all tasks.
    pub stop: CancellationToken,
    /// The tasks: connections and answers.
    pub tasks: TaskTracker,
    clients: &'static str,
}

impl Serving {
    /// Creates a server without tasks. `clients` names its clients in the log, such as
    /// `MCP clients`.
    pub fn new(clients: &'static str) -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            clients,
        }
    }
}

#[async_trait]
impl Running for Serving {
    async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("not all calls of {} ended in time; they are given up", self.clients);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
