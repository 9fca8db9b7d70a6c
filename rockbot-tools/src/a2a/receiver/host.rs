//! The running side of a receiver: its tasks, its card, and the messages that it sends.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Bus, BusError, Message, MessageEnvelope};
use rockbot_core::service::AgentCard;
use rockbot_core::tool::ToolRegistry;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{AgentIdentity, Clock};
use serde::Serialize;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::super::topics::Topics;
use super::super::wire::{AgentMessage, AgentTaskState, AgentTaskStatusUpdate, AnnouncedCard};
use super::inbound::{InboundTask, InboundTasks};
use super::settings::{AllowedCallers, ReceiverLimits};
use crate::a2a_callers::chains::Chains;

/// Pause before the first further attempt to send an answer. It doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Maximum time to tell that this agent leaves.
const GOODBYE_TIME: Duration = Duration::from_secs(2);

/// The parts of a receiver that has started.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) identity: AgentIdentity,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) turns: Arc<dyn TurnRunner>,
    pub(super) topics: Topics,
    pub(super) card: AgentCard,
    pub(super) callers: AllowedCallers,
    pub(super) limits: ReceiverLimits,
    pub(super) chains: Arc<Chains>,
    /// The tools of the host.
    pub(super) tools: Arc<dyn ToolRegistry>,
    pub(super) tasks: Mutex<InboundTasks>,
    /// Takes the tasks whose ends are to be waited for.
    pub(super) begun: mpsc::Sender<InboundTask>,
    /// Notifies of a wish for the card.
    pub(super) wanted: Notify,
}

impl Receiver {
    /// Announces the card. A failure is logged: the card is announced again at the next interval.
    pub(super) async fn announce(&self) {
        self.publish_card(AnnouncedCard::of(&self.card)).await;
    }

    /// Tells that this agent takes no further tasks.
    pub(super) async fn leave(&self) {
        let mut card = AnnouncedCard::of(&AgentCard::new(self.card.agent_name.clone()));
        card.is_deregistering = true;
        let _ = timeout(GOODBYE_TIME, self.publish_card(card)).await;
    }

    async fn publish_card(&self, card: AnnouncedCard) {
        let published = async {
            let envelope = MessageEnvelope::of(&card)?.with_source(self.identity.name().clone());
            self.bus.publish(&self.topics.discovery, Arc::new(envelope)).await
        };
        if let Err(error) = published.await {
            tracing::warn!(%error, "this agent could not be announced; it is announced again");
        }
    }

    /// Tells how far a task is. A failure is logged: the answer tells the rest.
    pub(super) async fn report(&self, task: &InboundTask, state: AgentTaskState, text: Option<&str>) {
        let status = AgentTaskStatusUpdate {
            task_id: task.task.clone(),
            context_id: task.context.clone(),
            state,
            message: text.map(|text| AgentMessage::new("agent").with_text(text)),
        };
        if let Err(error) = self.send(&self.topics.status, task, &status, None).await {
            tracing::warn!(caller = task.caller, %error, "the status of a task could not be told");
        }
    }

    /// Publishes a message about a task, addressed to its caller.
    pub(super) async fn send<M: Message + Serialize + Sync>(
        &self,
        topic: &str,
        task: &InboundTask,
        message: &M,
        id: Option<&str>,
    ) -> Result<(), BusError> {
        let mut envelope = MessageEnvelope::of(message)?
            .with_source(self.identity.name().clone())
            .with_destination(task.caller.as_str())
            .with_correlation_id(task.correlation.as_str());
        if let Some(id) = id {
            envelope = envelope.with_id(id);
        }
        self.bus.publish(topic, Arc::new(envelope)).await.map(drop)
    }

    /// Sends the answer to a task until the bus has it.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus will never take the answer, or is closed.
    pub(super) async fn answer<M: Message + Serialize + Sync>(
        &self,
        task: &InboundTask,
        message: &M,
        id: &str,
    ) -> Result<(), BusError> {
        let mut pause = PAUSE;
        loop {
            match self.send(&task.reply_to, task, message, Some(id)).await {
                Err(error) if error.retry_helps() => {
                    tracing::warn!(caller = task.caller, %error, "an answer is not sent yet; it is sent again");
                    sleep(pause).await;
                    pause = MAX_PAUSE.min(pause * 2);
                }
                sent => return sent,
            }
        }
    }
}
