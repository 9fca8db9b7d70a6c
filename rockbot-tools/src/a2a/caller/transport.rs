//! The ways to agents: the contract of a transport, which hands tasks over, and of the side that it
//! reports to.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::TraceContext;
use rockbot_core::content::MediaPart;
use rockbot_core::service::AgentCard;
use rockbot_core::tool::ToolError;
use serde_json::{Map, Value};

use super::ends::EndWords;
use super::tasks::{PendingTask, RemoteIds};

/// A task as it is handed over.
#[derive(Debug)]
pub(super) struct Handover<'a> {
    pub(super) task: &'a PendingTask,
    pub(super) message: &'a str,
    pub(super) data: Option<&'a Map<String, Value>>,
    pub(super) files: &'a [MediaPart],
    /// Id of the conversation that the task goes on with, if the call names one.
    pub(super) context: Option<&'a str>,
    /// Agents through which the task comes; this agent is the last.
    pub(super) chain: &'a [String],
    pub(super) limit: Duration,
    pub(super) trace: Option<&'a TraceContext>,
}

/// A way to agents.
#[async_trait]
pub(super) trait Transport: fmt::Debug + Send + Sync {
    /// Makes sure that an agent can be called.
    ///
    /// # Errors
    ///
    /// Returns the reason why the agent cannot be called, in words for a model.
    async fn prepare(&self, agent: &AgentCard) -> Result<(), ToolError>;

    /// Hands a task over that is tracked already. Its statuses and its end come later.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent does not get the task.
    async fn hand_over(&self, handover: Handover<'_>) -> Result<(), ToolError>;

    /// Asks an agent to stop a task whose end is no longer awaited. A failure is logged.
    async fn call_off(&self, task: &PendingTask);
}

/// The side of a transport that follows the tasks itself: it keeps and tells what becomes of them.
#[async_trait]
pub(super) trait Reports: fmt::Debug + Send + Sync {
    /// Keeps the message of a task, before it is sent.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be kept.
    async fn keep_message(&self, task: &str, message: String) -> Result<(), ToolError>;

    /// Notes that the message of a task is sent now.
    async fn sending(&self, task: &str);

    /// Keeps the agent's own ids of a task.
    async fn reached(&self, task: &str, ids: RemoteIds);

    /// Tells the user how far a task is. The same status is told once.
    async fn status(&self, task: &str, text: &str);

    /// Ends a task. Returns once the end is kept or told, or the task is gone.
    async fn end(&self, task: &str, words: EndWords);
}
