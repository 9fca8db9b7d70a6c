//! The subscriptions of a caller: announcements, answers to its tasks, statuses.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    BusError, Delivery, DeliveryHandler, Disposition, Message as _, MessageEnvelope, MessageSubscriberExt as _,
    PayloadError, SubscribeOptions, Subscription,
};
use rockbot_core::support::loggable;

use super::super::cards::{MAX_CARD, admitted};
use super::super::wire::{AgentTaskError, AgentTaskResult, AgentTaskStatusUpdate, AnnouncedCard, codes};
use super::bus::BusTransport;
use super::ends::{self, EndWords};
use super::host::Caller;
use super::tasks::PendingTask;
use super::tell::NotTold;

/// Maximum length of an answer, in bytes. Of a longer answer only the length is told.
const MAX_ANSWER: usize = 4 << 20;

/// Maximum length of a status, in bytes. A longer status is dropped.
const MAX_STATUS: usize = 64 << 10;

/// Number of answers that are taken concurrently.
const CONCURRENCY: usize = 4;

/// A subject of messages to a caller.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Cards,
    Statuses,
    Answers,
}

/// The handler of the messages of a subject.
struct Listener {
    caller: Arc<Caller>,
    subject: Subject,
}

/// Opens the subscriptions of a caller. They end when they are dropped.
pub(super) async fn listen(caller: &Arc<Caller>, way: &BusTransport) -> Result<[Subscription; 3], BusError> {
    let identity = &caller.identity;
    let answers = way.topics.response_of(identity.name());
    let discovery = &way.topics.discovery;
    let status = &way.topics.status;
    // Each process reads all cards and statuses; answers wait in a queue while no process runs.
    let own = |topic: &str| format!("{}.{}", identity.subscription_name(topic), identity.instance_id());
    let each = || SubscribeOptions::new().ephemeral();
    let kept = SubscribeOptions::new().with_concurrency(CONCURRENCY);
    let of = |subject| Listener {
        caller: caller.clone(),
        subject,
    };
    let bus = &way.bus;
    Ok([
        bus.on_with(discovery, &own(discovery), each(), of(Subject::Cards))
            .await?,
        bus.on_with(status, &own(status), each(), of(Subject::Statuses)).await?,
        bus.on_with(
            &answers,
            &identity.subscription_name(&answers),
            kept,
            of(Subject::Answers),
        )
        .await?,
    ])
}

#[async_trait]
impl DeliveryHandler for Listener {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        if delivery.trust == Trust::Untrusted {
            // On an unauthenticated channel a name proves nothing.
            return Disposition::dead_letter("agents are not believed on an unauthenticated channel");
        }
        let envelope = &delivery.envelope;
        let taken = match self.subject {
            Subject::Cards => self.caller.take_card(envelope),
            Subject::Statuses => self.caller.take_status(envelope).await,
            Subject::Answers => match self.caller.take_answer(envelope).await {
                Ok(Err(NotTold(reason))) => return Disposition::retry(reason),
                Ok(Ok(())) => Ok(()),
                Err(error) => Err(error),
            },
        };
        taken.map_or_else(Disposition::dead_letter, |()| Disposition::Ack)
    }
}

impl Caller {
    /// Takes the announcement of an agent, which speaks for itself alone.
    fn take_card(&self, envelope: &MessageEnvelope) -> Result<(), PayloadError> {
        let source = &*envelope.source;
        let me = self.identity.name();
        if envelope.message_type != AnnouncedCard::TYPE || source.eq_ignore_ascii_case(me) {
            return Ok(());
        }
        if envelope.body.len() > MAX_CARD {
            let bytes = envelope.body.len();
            tracing::warn!(agent = %loggable(source), bytes, "the card of an agent is too long and not read");
            return Ok(());
        }
        let card: AnnouncedCard = envelope.payload()?;
        let is_own = card.agent_name == source;
        let is_leaving = card.is_deregistering;
        match admitted(card).filter(|_| is_own) {
            Some(card) if is_leaving => self.directory.left(&card.agent_name),
            Some(card) => self.directory.announced(card),
            None => {
                tracing::warn!(agent = %loggable(source), "the card of an agent is not taken: its name is not legal, or not the sender's")
            }
        }
        Ok(())
    }

    /// Takes news of a task, and tells the user.
    async fn take_status(&self, envelope: &MessageEnvelope) -> Result<(), PayloadError> {
        if envelope.message_type != AgentTaskStatusUpdate::TYPE || envelope.body.len() > MAX_STATUS {
            return Ok(());
        }
        let status: AgentTaskStatusUpdate = envelope.payload()?;
        if let Some(task) = self.task_of(envelope, &status.task_id).await {
            let text = ends::of_status(status.state, status.message.as_ref());
            self.tell_status(&task, &envelope.message_id, &text).await;
        }
        Ok(())
    }

    /// Takes an answer to a task: a result or an error.
    async fn take_answer(&self, envelope: &MessageEnvelope) -> Result<Result<(), NotTold>, PayloadError> {
        if envelope.body.len() > MAX_ANSWER {
            let id = envelope.correlation_id.as_deref().unwrap_or_default();
            let Some(task) = self.task_of(envelope, id).await else {
                return Ok(Ok(()));
            };
            return Ok(self.end_in(&task, ends::of_excess(&task, envelope.body.len())).await);
        }
        match &*envelope.message_type {
            AgentTaskResult::TYPE => {
                let result: AgentTaskResult = envelope.payload()?;
                let Some(task) = self.task_of(envelope, &result.task_id).await else {
                    return Ok(Ok(()));
                };
                match ends::of_result(&task, &result) {
                    Some(words) => Ok(self.end_in(&task, words).await),
                    None => {
                        let text = ends::of_status(result.state, result.message.as_ref());
                        self.tell_status(&task, &envelope.message_id, &text).await;
                        Ok(Ok(()))
                    }
                }
            }
            AgentTaskError::TYPE => {
                let error: AgentTaskError = envelope.payload()?;
                match self.task_of(envelope, &error.task_id).await {
                    // The error answers a cancellation, and the task goes on.
                    Some(_) if error.code == codes::TASK_NOT_CANCELABLE => Ok(Ok(())),
                    Some(task) => Ok(self.end_in(&task, ends::of_error(&task, &error)).await),
                    None => Ok(Ok(())),
                }
            }
            _ => Ok(Ok(())),
        }
    }

    /// Returns the task that a message is about, if it comes from the agent that works on it and
    /// the task has not ended.
    async fn task_of(&self, envelope: &MessageEnvelope, id: &str) -> Option<PendingTask> {
        let correlation = envelope.correlation_id.as_deref().filter(|id| !id.is_empty());
        let is_its = |task: &PendingTask| {
            task.end.is_none()
                && task.remote.is_none()
                && task.agent.eq_ignore_ascii_case(&envelope.source)
                && correlation.is_none_or(|of| of == id)
        };
        let task = self.tasks.lock().await.get(id).cloned();
        let found = task.filter(is_its);
        if found.is_none() {
            // The message is a second answer, comes late, is meant for another process, or comes
            // from an agent that was not asked.
            tracing::debug!(agent = %loggable(&envelope.source), "a message about a task that is not awaited from this agent is dropped");
        }
        found
    }

    /// Ends a task with these words.
    pub(super) async fn end_in(&self, task: &PendingTask, words: EndWords) -> Result<(), NotTold> {
        let end = self.end_with(task, words).await;
        self.end(task, end).await
    }
}
