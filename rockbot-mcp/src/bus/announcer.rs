//! The task that announces a bridge's servers: now, when they change, when an agent asks, and as
//! a sign of life.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::AgentIdentity;
use rockbot_core::messaging::lease::heartbeat_interval;
use rockbot_core::messaging::{Bus, Message, MessageEnvelope};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{BridgeLeaving, meta_topic};
use crate::index_event::{Index, McpBridgeLease, McpServerSummary, McpServersIndexed, removed, summaries};
use crate::servers::McpServers;

/// Time for merging changes into one announcement, and shortest time between two answers to
/// requests.
const MERGE: Duration = Duration::from_millis(100);

/// Maximum time that a host waits for the announcement of its end; the lease ends otherwise.
const LEAVING_TIME: Duration = Duration::from_secs(1);

/// Maximum length of all names of tools in an announcement, in bytes. Beyond it agents learn them
/// from the details alone.
const MAX_NAMES: usize = 256 * 1024;

/// The announcements of a bridge.
pub(super) struct Announcer {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) identity: AgentIdentity,
    pub(super) lease: Duration,
    pub(super) servers: McpServers,
    /// Wakes the task when an agent asks.
    pub(super) asked: Arc<Notify>,
}

impl Announcer {
    /// Announces the servers until `stop` is cancelled, and then that the bridge leaves.
    pub(super) async fn run(self, stop: CancellationToken) {
        let _ = stop.run_until_cancelled(self.announce_until_dropped()).await;
        let leaving = BridgeLeaving {
            name: self.identity.name().to_string(),
            instance: self.identity.instance_id().to_string(),
        };
        let _ = timeout(LEAVING_TIME, self.publish(&leaving)).await;
    }

    async fn announce_until_dropped(&self) {
        let Some(mut changes) = self.servers.watch() else {
            return;
        };
        let mut heartbeats = interval(heartbeat_interval(self.lease));
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeats.tick().await;
        let mut revision = 1;
        let mut last = self.index();
        self.announce(revision, &last, Vec::new()).await;
        loop {
            let is_asked = tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
                () = self.asked.notified() => true,
                _ = heartbeats.tick() => {
                    self.publish(&self.lease(revision)).await;
                    continue;
                }
            };
            sleep(MERGE).await;
            let index = self.index();
            let has_changed = index != last;
            let removed = removed(&last, &index);
            if has_changed {
                (revision, last) = (revision + 1, index);
            }
            if has_changed || is_asked {
                self.announce(revision, &last, removed).await;
            }
        }
    }

    /// Returns the servers that are connected here, without the servers of other bridges.
    fn index(&self) -> Index {
        let runtime = self.servers.runtime();
        runtime
            .map(|runtime| summaries(&runtime.bridge, true))
            .unwrap_or_default()
    }

    fn lease(&self, revision: u64) -> McpBridgeLease {
        McpBridgeLease {
            name: self.identity.name().to_string(),
            instance: self.identity.instance_id().to_string(),
            revision,
            lease_ms: u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX),
        }
    }

    async fn announce(&self, revision: u64, index: &Index, removed_servers: Vec<String>) {
        let mut left = MAX_NAMES;
        let servers = index.values().map(|summary| within(&mut left, summary.clone()));
        let announcement = McpServersIndexed {
            servers: servers.collect(),
            removed_servers,
            bridge: Some(self.lease(revision)),
        };
        self.publish(&announcement).await;
    }

    async fn publish<M: Message + Serialize>(&self, message: &M) {
        let Ok(envelope) = MessageEnvelope::of(message) else {
            return;
        };
        let envelope = Arc::new(envelope.with_source(self.identity.name().clone()));
        // An agent that misses it asks after the next heartbeat.
        if let Err(error) = self.bus.publish(&meta_topic(self.identity.name()), envelope).await {
            tracing::warn!(%error, "the MCP servers of this bridge could not be announced; trying again");
        }
    }
}

/// Leaves out the names of a server's tools if they are longer than `left`, the length that
/// remains for all servers.
fn within(left: &mut usize, mut summary: McpServerSummary) -> McpServerSummary {
    let length = summary.tool_names.iter().map(String::len).sum();
    match left.checked_sub(length) {
        Some(rest) => *left = rest,
        None => summary.tool_names.clear(),
    }
    summary
}
