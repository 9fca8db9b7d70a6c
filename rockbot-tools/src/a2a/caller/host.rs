//! The running side of a caller: its tasks, and the parts of the host that it needs.

use std::sync::Arc;

use rockbot_core::messaging::{Bus, BusError, Message, MessageEnvelope, Reach};
use rockbot_core::store::WorkingMemory;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{AgentIdentity, Clock};
use serde::Serialize;
use tokio::sync::{Mutex, watch};

use super::super::chains::Chains;
use super::super::directory::Directory;
use super::super::topics::Topics;
use super::super::wire::AgentTaskCancelRequest;
use super::tasks::{PendingTask, PendingTasks};

/// The parts of a caller that has started.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) identity: AgentIdentity,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) turns: Arc<dyn TurnRunner>,
    pub(super) memory: Option<Arc<dyn WorkingMemory>>,
    pub(super) topics: Topics,
    pub(super) directory: Arc<Directory>,
    /// The chains of the tasks that this host does for other agents; `None` without a receiver.
    pub(super) chains: Option<Arc<Chains>>,
    pub(super) tasks: Mutex<PendingTasks>,
    /// Notifies of each change of the tasks.
    pub(super) changed: watch::Sender<()>,
}

impl Caller {
    /// Publishes a message to an agent, about the task of this id.
    pub(super) async fn publish<M: Message + Serialize + Sync>(
        &self,
        topic: &str,
        task: &str,
        message: &M,
        change: impl FnOnce(MessageEnvelope) -> MessageEnvelope + Send,
    ) -> Result<Reach, BusError> {
        let envelope = MessageEnvelope::of(message)?
            .with_source(self.identity.name().clone())
            .with_correlation_id(task)
            .with_reply_to(self.topics.response_of(self.identity.name()));
        self.bus.publish(topic, Arc::new(change(envelope))).await
    }

    /// Asks an agent to stop a task whose end is no longer awaited. A failure is logged.
    pub(super) async fn call_off(&self, task: &PendingTask) {
        let request = AgentTaskCancelRequest {
            task_id: task.id.clone(),
            context_id: Some(task.context.clone()),
        };
        let topic = self.topics.cancel_of(&task.agent);
        let published = self.publish(&topic, &task.id, &request, |envelope| {
            envelope.with_destination(task.agent.as_str())
        });
        if let Err(error) = published.await {
            tracing::warn!(agent = task.agent, %error, "an agent could not be asked to stop a task");
        }
    }

    /// Gives up a task, and asks its agent to stop. The user is told nothing of the task.
    pub(super) async fn drop_task(&self, task: &PendingTask) {
        self.tasks.lock().await.remove(&task.id);
        self.changed.send_replace(());
        self.call_off(task).await;
    }
}
