//! The messages between tool workers and the agents that use their tools.

use rockbot_core::MessageId;
use rockbot_core::messaging::Message;
use rockbot_core::tool::ToolRegistration;
use serde::{Deserialize, Serialize};

/// Topic of announcements, heartbeats and withdrawals. Each agent gets all of them.
pub(super) const ANNOUNCE_TOPIC: &str = "tool.announce";

/// Topic of questions for announcements. Each worker gets all of them.
pub(super) const DISCOVER_TOPIC: &str = "tool.discover";

/// Topic of cancellations. Each worker gets all of them.
pub(crate) const CANCEL_TOPIC: &str = "tool.cancel";

/// An announcement of all tools that a worker has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolsAnnounced {
    /// The name of the worker. Workers of one name compete for the calls of their tools.
    pub(super) worker: String,
    /// The running process among the processes of the name.
    pub(super) instance: String,
    /// Number of the announcement, which grows with every change of the tools of this process.
    pub(super) revision: u64,
    /// Validity of the announcement, in milliseconds.
    pub(super) lease_ms: u64,
    /// The topic of calls.
    pub(super) topic: String,
    pub(super) tools: Vec<ToolRegistration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) guides: Vec<AnnouncedGuide>,
}

impl ToolsAnnounced {
    /// Returns the length of the worker's words about its tools, in bytes.
    pub(super) fn text_len(&self) -> usize {
        let tool = |tool: &ToolRegistration| tool.description.len() + tool.parameters_schema.to_string().len();
        let guide = |guide: &AnnouncedGuide| guide.name.len() + guide.summary.len() + guide.document.len();
        self.tools.iter().map(tool).sum::<usize>() + self.guides.iter().map(guide).sum::<usize>()
    }
}

/// A guide to the tools of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnnouncedGuide {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) document: String,
}

/// A sign of life of a worker, which renews its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkerHeartbeat {
    pub(super) worker: String,
    pub(super) instance: String,
    pub(super) revision: u64,
    pub(super) lease_ms: u64,
}

/// The withdrawal of the tools of a worker that stops: it takes no further calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolsWithdrawn {
    pub(super) worker: String,
    pub(super) instance: String,
}

/// A question for announcements of all workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolsWanted {}

/// The cancellation of a call whose answer is no longer awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallCancelled {
    /// The id of the message that asked for the call.
    pub(crate) message_id: MessageId,
}

impl Message for ToolsAnnounced {
    const TYPE: &'static str = "rockbot.ToolsAnnounced";
    const TOPIC: Option<&'static str> = Some(ANNOUNCE_TOPIC);
}

impl Message for WorkerHeartbeat {
    const TYPE: &'static str = "rockbot.WorkerHeartbeat";
    const TOPIC: Option<&'static str> = Some(ANNOUNCE_TOPIC);
}

impl Message for ToolsWithdrawn {
    const TYPE: &'static str = "rockbot.ToolsWithdrawn";
    const TOPIC: Option<&'static str> = Some(ANNOUNCE_TOPIC);
}

impl Message for ToolsWanted {
    const TYPE: &'static str = "rockbot.ToolsWanted";
    const TOPIC: Option<&'static str> = Some(DISCOVER_TOPIC);
}

impl Message for ToolCallCancelled {
    const TYPE: &'static str = "rockbot.ToolCallCancelled";
    const TOPIC: Option<&'static str> = Some(CANCEL_TOPIC);
}
