//! The event that the index of servers has changed: [`McpServersIndexed`].

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rockbot_core::Digest;
use rockbot_core::messaging::{Bus, Message, MessageEnvelope};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::sleep;

use crate::bridge::Bridge;
use crate::runtime::Runtime;
use crate::server::McpServer;
use crate::service::{Link, Service, ServiceState};

/// Time for merging changes into one event.
const MERGE: Duration = Duration::from_millis(100);

/// Number of events that a receiver may be behind.
pub(crate) const MAX_BEHIND: usize = 64;

/// The part of a host whose bridge announces the index, so that it is published once.
#[derive(Debug)]
pub(crate) struct AnnouncedByBridge;

/// The event that the index of servers and their tools has changed.
///
/// [`McpServers::subscribe`](crate::McpServers::subscribe) receives it in this process. A host
/// with a bus publishes it under `tool.meta.mcp.{agent}`, too; a host with an
/// [`McpBridge`](crate::McpBridge) publishes the bridge's announcements alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServersIndexed {
    /// Servers that are new or have changed, sorted by name.
    pub servers: Vec<McpServerSummary>,
    /// Names of servers that are gone, or not connected any more.
    #[serde(default)]
    pub removed_servers: Vec<String>,
    /// The bridge that runs calls of the servers for other agents; the event then lists all of its
    /// servers. `None` for a change of the servers that a host uses itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<McpBridgeLease>,
}

/// The lease of a bridge on its announcement, which is also its sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpBridgeLease {
    /// Name of the bridge: the agent that is connected to the servers.
    pub name: String,
    /// Id of its running process.
    pub instance: String,
    /// Number of the announcement, which grows with every change.
    pub revision: u64,
    /// Validity of the announcement, in milliseconds.
    pub lease_ms: u64,
}

/// A connected server in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServerSummary {
    /// Name of the server.
    pub server_name: String,
    /// Words of the server about itself, up to 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Number of its tools.
    pub tool_count: usize,
    /// Names of its tools, as the server has them.
    #[serde(default)]
    pub tool_names: Vec<String>,
    /// Digest of all definitions of the tools; it tells an agent that the definitions it has are
    /// stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl Message for McpServersIndexed {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpServersIndexed";
}

/// The index at one moment, by the names of the servers.
pub(crate) type Index = BTreeMap<String, McpServerSummary>;

/// Sends an event for each change until the host stops.
pub(crate) async fn announce(
    runtime: Weak<Runtime>,
    events: broadcast::Sender<McpServersIndexed>,
    bus: Option<(Arc<dyn Bus>, String)>,
) {
    let Some(mut changes) = runtime.upgrade().map(|runtime| runtime.bridge.watch()) else {
        return;
    };
    let mut last = Index::new();
    loop {
        changes.borrow_and_update();
        let Some(runtime) = runtime.upgrade() else {
            return;
        };
        let index = summaries(&runtime.bridge, false);
        drop(runtime);
        let event = difference(&last, &index);
        last = index;
        if !event.servers.is_empty() || !event.removed_servers.is_empty() {
            if let Some((bus, topic)) = &bus {
                publish(bus.as_ref(), topic, &event).await;
            }
            // An error means that there is no receiver now.
            let _ = events.send(event);
        }
        if changes.changed().await.is_err() {
            return;
        }
        sleep(MERGE).await;
    }
}

/// Returns the index as it is now: of all servers, or only of the servers that this host itself
/// is connected to.
pub(crate) fn summaries(bridge: &Bridge, only_own: bool) -> Index {
    let is_listed = |service: &Arc<Service>| !only_own || service.bridged().is_none();
    let services = bridge.all().into_iter().filter(is_listed);
    services.filter_map(|service| summary(&service)).collect()
}

/// Returns the entry of a server that is connected.
fn summary(service: &Service) -> Option<(String, McpServerSummary)> {
    let state = service.state.borrow();
    if !matches!(state.link, Link::Up(_) | Link::Bridged(_)) {
        return None;
    }
    let summary = McpServerSummary {
        server_name: service.server.name().to_owned(),
        summary: state
            .instructions
            .as_deref()
            .map(|text| text.chars().take(300).collect()),
        tool_count: state.tools.len(),
        tool_names: state.tools.iter().map(|tool| tool.name.clone()).collect(),
        fingerprint: Some(fingerprint(&service.server, &state)),
    };
    Some((service.server.key(), summary))
}

/// Returns the digest of everything that an agent must know of a server: its definitions, and how
/// its operator lets them count.
pub(crate) fn fingerprint(server: &McpServer, state: &ServiceState) -> String {
    let tools = state.tools.iter();
    let tools = tools.map(|tool| format!("{}{:?}", tool.fingerprint, server.effect(tool.claimed)));
    let rest = format!("{:?}{:?}", state.instructions, server.time_limit);
    Digest::of(tools.chain([rest])).to_string()
}

/// Returns the names of the servers of `last` that are gone.
pub(crate) fn removed(last: &Index, index: &Index) -> Vec<String> {
    let gone = last.iter().filter(|(key, _)| !index.contains_key(*key));
    gone.map(|(_, summary)| summary.server_name.clone()).collect()
}

fn difference(last: &Index, index: &Index) -> McpServersIndexed {
    let is_new = |(key, summary): &(&String, &McpServerSummary)| last.get(*key) != Some(*summary);
    McpServersIndexed {
        servers: index
            .iter()
            .filter(is_new)
            .map(|(_, summary)| summary.clone())
            .collect(),
        removed_servers: removed(last, index),
        bridge: None,
    }
}

async fn publish(bus: &dyn Bus, topic: &str, event: &McpServersIndexed) {
    let Ok(envelope) = MessageEnvelope::of(event) else {
        return;
    };
    if let Err(error) = bus.publish(topic, Arc::new(envelope)).await {
        tracing::warn!(%error, "the index of MCP servers has changed, and the bus was not told");
    }
}
