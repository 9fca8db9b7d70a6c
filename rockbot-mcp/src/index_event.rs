//! The event that the index of servers has changed: [`McpServersIndexed`].

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rockbot_core::messaging::{Bus, Message, MessageEnvelope};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::sleep;

use crate::runtime::Runtime;
use crate::service::{Link, Service};

/// Time in which changes are merged into one event.
const MERGE: Duration = Duration::from_millis(100);

/// Number of events that a receiver may be behind.
pub(crate) const MAX_BEHIND: usize = 64;

/// The event that the index of servers and their tools has changed.
///
/// [`McpServers::subscribe`](crate::McpServers::subscribe) receives it in this process. A host with a bus publishes it
/// under `tool.meta.mcp.{agent}`, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServersIndexed {
    /// Servers that are new or have changed, sorted by name.
    pub servers: Vec<McpServerSummary>,
    /// Names of servers that are gone, or not connected any more.
    #[serde(default)]
    pub removed_servers: Vec<String>,
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
    pub tool_names: Vec<String>,
}

impl Message for McpServersIndexed {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpServersIndexed";
}

/// The index at one moment, by the names of the servers.
type Index = BTreeMap<String, McpServerSummary>;

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
        let index: Index = runtime
            .bridge
            .all()
            .iter()
            .filter_map(|service| summary(service))
            .collect();
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

/// Returns the entry of a server that is connected.
fn summary(service: &Service) -> Option<(String, McpServerSummary)> {
    let state = service.state.borrow();
    if !matches!(state.link, Link::Up(_)) {
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
    };
    Some((service.server.key(), summary))
}

fn difference(last: &Index, index: &Index) -> McpServersIndexed {
    let is_new = |(key, summary): &(&String, &McpServerSummary)| last.get(*key) != Some(*summary);
    let is_gone = |(key, _): &(&String, &McpServerSummary)| !index.contains_key(*key);
    McpServersIndexed {
        servers: index
            .iter()
            .filter(is_new)
            .map(|(_, summary)| summary.clone())
            .collect(),
        removed_servers: last
            .iter()
            .filter(is_gone)
            .map(|(_, summary)| summary.server_name.clone())
            .collect(),
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
