//! Final replies on their way to those who asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{BusError, MessageEnvelope, MessagePublisher, Reach};
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use rockbot_core::user::AgentReply;
use rockbot_core::{AgentIdentity, BoxError};
use serde_json::json;

use crate::engine::ReplySender;

/// The pauses between attempts to publish an answer.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// Publishes final replies under the topics that their messages name.
#[derive(Debug)]
pub(crate) struct Replies {
    pub(crate) publisher: Arc<dyn MessagePublisher>,
    pub(crate) identity: AgentIdentity,
}

#[async_trait]
impl ReplySender for Replies {
    async fn send(&self, request: &TurnRequest, outcome: &TurnOutcome) -> Result<(), BoxError> {
        let Some(topic) = &request.reply_to else { return Ok(()) };
        let envelope = self.envelope(request, outcome)?;
        let error = match publish_with_retries(&*self.publisher, topic, &envelope).await {
            Ok(reach) => {
                tracing::debug!(turn = %outcome.turn, nobody = reach == Reach::NoSubscribers, "reply sent");
                return Ok(());
            }
            Err(error) => error,
        };
        tracing::warn!(turn = %outcome.turn, %error, "a final reply could not be sent");
        match error.retry_helps() || matches!(error, BusError::Closed) {
            true => Err(error.into()),
            // It never will be: the conversation has it, and the message must not be answered for ever.
            false => Ok(()),
        }
    }
}

/// Publishes a message, again after a while where that may help.
pub(crate) async fn publish_with_retries(
    publisher: &dyn MessagePublisher,
    topic: &str,
    envelope: &Arc<MessageEnvelope>,
) -> Result<Reach, BusError> {
    for pause in PAUSES {
        match publisher.publish(topic, Arc::clone(envelope)).await {
            Err(error) if error.retry_helps() => tokio::time::sleep(pause).await,
            published => return published,
        }
    }
    publisher.publish(topic, Arc::clone(envelope)).await
}

impl Replies {
    /// The reply. Its message id comes from the turn: sent twice, it is the same message.
    fn envelope(&self, request: &TurnRequest, outcome: &TurnOutcome) -> Result<Arc<MessageEnvelope>, BusError> {
        // An answer speaks for itself; what else a reply is, programs must be told.
        let status = (!outcome.is_answer()).then_some(&outcome.status);
        let reply = AgentReply {
            content: outcome.text.clone(),
            session_id: request.session.clone(),
            agent_name: self.identity.name().to_string(),
            is_final: true,
            structured_data: status.map(|status| json!({ "status": status })),
            content_type: status.map(|_| AgentReply::STATUS.to_owned()),
        };
        let mut envelope = MessageEnvelope::of(&reply)?
            .with_id(format!("{}.reply", outcome.turn))
            .with_source(Arc::clone(self.identity.name()));
        envelope.correlation_id = request.correlation_id.as_deref().map(Arc::from);
        envelope.destination = (!request.source.is_empty()).then(|| request.source.as_str().into());
        Ok(Arc::new(envelope))
    }
}
