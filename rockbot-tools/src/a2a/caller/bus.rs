//! The way to agents on the bus, in the messages of the original.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::AgentIdentity;
use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::messaging::{Bus, BusError, Message, MessageEnvelope, Reach, headers};
use rockbot_core::service::AgentCard;
use rockbot_core::tool::ToolError;
use serde::Serialize;
use serde_json::Value;

use super::super::topics::Topics;
use super::super::wire::{AgentMessage, AgentTaskCancelRequest, AgentTaskRequest, CardsWanted};
use super::files;
use super::tasks::PendingTask;
use super::transport::{Handover, Transport};
use crate::a2a_callers::chains;

/// The bus, and the topics of agents on it.
#[derive(Debug)]
pub(super) struct BusTransport {
    pub(super) identity: AgentIdentity,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) topics: Topics,
}

impl BusTransport {
    /// Asks the agents on the bus for their cards. Agents that do not know the question announce
    /// themselves at their interval.
    pub(super) async fn ask_for_cards(&self) {
        let asked = async {
            let envelope = MessageEnvelope::of(&CardsWanted {})?.with_source(self.identity.name().clone());
            self.bus.publish(Topics::wanted(), Arc::new(envelope)).await
        };
        if let Err(error) = asked.await {
            tracing::warn!(%error, "agents could not be asked for their cards; they announce themselves at their interval");
        }
    }

    /// Publishes a message to an agent, about the task of this id.
    async fn publish<M: Message + Serialize + Sync>(
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
}

#[async_trait]
impl Transport for BusTransport {
    async fn prepare(&self, _: &AgentCard) -> Result<(), ToolError> {
        Ok(())
    }

    async fn hand_over(&self, handover: Handover<'_>) -> Result<(), ToolError> {
        let task = handover.task;
        let mut message = AgentMessage::new("user").with_text(handover.message);
        if let Some(data) = handover.data {
            message = message.with_data(&Value::from(data.clone()));
        }
        for file in handover.files {
            message = message.with_text(&text_of(file)?);
        }
        let request = AgentTaskRequest {
            task_id: task.id.clone(),
            context_id: Some(task.context.clone()),
            skill: task.skill.clone(),
            message,
        };
        let change = |envelope: MessageEnvelope| {
            let mut envelope = envelope
                // The same task is the same message, so that receivers deduplicate it.
                .with_id(task.id.as_str())
                .with_destination(task.agent.as_str())
                .with_header(headers::TIMEOUT_MS, handover.limit.as_millis().to_string())
                .with_header(chains::HEADER, handover.chain.join(","));
            if let Some(trace) = handover.trace {
                headers::set_trace(trace, &mut envelope.headers);
            }
            envelope
        };
        let topic = self.topics.task_of(&task.agent);
        match self.publish(&topic, &task.id, &request, change).await {
            Ok(Reach::NoSubscribers) => Err(ToolError::execution_failed(format!(
                "the agent `{}` does not run: nothing takes its tasks",
                task.agent
            ))),
            Ok(Reach::Subscribers | Reach::Unknown) => Ok(()),
            Err(error) => Err(ToolError::execution_failed("the task could not be sent").with_source(error)),
        }
    }

    async fn call_off(&self, task: &PendingTask) {
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
}

/// Returns a file as a text: the messages of the original carry nothing else.
fn text_of(file: &MediaPart) -> Result<String, ToolError> {
    let name = file.name.as_deref().unwrap_or_default();
    if let MediaSource::Url(url) = &file.source {
        return Ok(format!("[file by reference: {url}]"));
    }
    match files::text_of(file) {
        Some(text) => Ok(format!("[file {name}]\n{text}")),
        None => Err(ToolError::invalid_arguments(format!(
            "agents on the bus take files that are texts, and `{name}` is none: send its URL, or leave it out"
        ))),
    }
}
