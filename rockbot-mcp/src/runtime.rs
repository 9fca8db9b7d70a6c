//! The running side of the subsystem: the servers of a host, and the tasks that keep them
//! connected.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::context::CancellationToken;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::bridge::Bridge;
use crate::config::MAX_SERVERS;
use crate::server::McpServer;
use crate::service::{Origin, Service};
use crate::supervisor::supervise;

/// Time limit for closing the connections and ending their processes, when the host stops.
const CLOSING: Duration = Duration::from_secs(6);

/// Number of places that the servers of bridges leave to the servers of the agent itself.
const RESERVED: usize = 32;

/// The servers and their tasks. Its drop ends all of them.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) bridge: Arc<Bridge>,
    stop: CancellationToken,
    /// Ends the tasks that have not ended in time. Resources that they own end with them, such as
    /// processes.
    abort: CancellationToken,
    tasks: TaskTracker,
}

impl Runtime {
    pub(crate) fn new(bridge: Bridge) -> Self {
        Self {
            bridge: Arc::new(bridge),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Connects a server in the background. Returns `false` if another server has its name, or there
    /// are too many.
    pub(crate) fn connect(&self, server: McpServer, origin: Origin) -> bool {
        let position = self.bridge.all().len();
        if position >= MAX_SERVERS || self.stop.is_cancelled() {
            return false;
        }
        let service = Service::new(server, origin, position, self.stop.child_token());
        let added = self.bridge.add(service);
        let is_added = added.is_some();
        if let Some(service) = added {
            let abort = self.abort.clone();
            let bridge = self.bridge.clone();
            self.tasks
                .spawn(async move { abort.run_until_cancelled_owned(supervise(bridge, service)).await });
        }
        is_added
    }

    /// Adds a server that is reached by a bridge on the bus. Returns `None` if another server has its
    /// name, or there are too many.
    pub(crate) fn add_bridged(&self, server: McpServer) -> Option<Arc<Service>> {
        let is_full = self.bridge.all().len() >= MAX_SERVERS || self.stop.is_cancelled();
        let service = || Service::new(server, Origin::Bridge, 0, self.stop.child_token());
        (!is_full).then(service).and_then(|service| self.bridge.add(service))
    }

    /// Returns the number of places for servers of bridges.
    pub(crate) fn bridged_places(&self) -> usize {
        let own = self
            .bridge
            .all()
            .into_iter()
            .filter(|service| service.origin != Origin::Bridge);
        MAX_SERVERS - own.count().clamp(RESERVED, MAX_SERVERS)
    }

    /// Runs further work until the host stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("not all MCP servers ended in time; their processes are killed");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A host that is dropped without a stop: the supervisors end, and with them the processes.
        self.stop.cancel();
    }
}
