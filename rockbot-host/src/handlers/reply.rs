//! Final replies on their way to the user.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::content::Content;
use rockbot_core::messaging::{BusError, MessageEnvelope, MessagePublisher, Reach, headers};
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use rockbot_core::user::AgentReply;
use rockbot_core::{AgentIdentity, BoxError, TraceContext};
use serde_json::json;

use crate::engine::ReplySender;
use crate::media_library::MediaLibrary;

/// Pauses between attempts to publish a reply. Four attempts in about twenty seconds outlast a
/// reconnect of a bus.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// A sender that publishes final replies to the reply topics of their messages.
#[derive(Debug)]
pub(crate) struct BusReplySender {
    pub(crate) publisher: Arc<dyn MessagePublisher>,
    pub(crate) identity: AgentIdentity,
    pub(crate) media: Arc<MediaLibrary>,
    /// Maximum size of the media that a reply carries.
    pub(crate) max_media_bytes: u64,
}

#[async_trait]
impl ReplySender for BusReplySender {
    async fn send(
        &self,
        request: &TurnRequest,
        outcome: &TurnOutcome,
        trace: Option<&TraceContext>,
    ) -> Result<(), BoxError> {
        let Some(topic) = &request.reply_to else { return Ok(()) };
        let error = match self.publish(topic, request, outcome, trace).await {
            Ok(reach) => {
                tracing::debug!(turn = %outcome.turn, no_subscribers = reach == Reach::NoSubscribers, "reply sent");
                return Ok(());
            }
            Err(error) => error,
        };
        tracing::warn!(turn = %outcome.turn, %error, "final reply not sent; it is retried when the host restarts, unless a retry cannot help");
        match error.retry_helps() || matches!(error, BusError::Closed) {
            true => Err(error.into()),
            // It can never be sent. The conversation has the answer; retrying at each start would not end.
            false => Ok(()),
        }
    }
}

/// Publishes a message, with up to four attempts where the error states that a retry may help.
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

impl BusReplySender {
    async fn publish(
        &self,
        topic: &str,
        request: &TurnRequest,
        outcome: &TurnOutcome,
        trace: Option<&TraceContext>,
    ) -> Result<Reach, BusError> {
        let mut content = outcome.content();
        if content.has_stored_media() {
            let max = self.max_media_bytes;
            self.media.load_within(&request.principal, &mut content, max).await;
        }
        let envelope = self.envelope(request, outcome, content, trace)?;
        match publish_with_retries(&*self.publisher, topic, &envelope).await {
            // The bus takes smaller messages than the limit of media says: references fit.
            Err(BusError::TooLarge { .. }) if outcome.content().has_stored_media() => {
                let envelope = self.envelope(request, outcome, outcome.content(), trace)?;
                publish_with_retries(&*self.publisher, topic, &envelope).await
            }
            published => published,
        }
    }

    /// Creates the envelope of the reply. Its message id is derived from the turn's, so receivers
    /// deduplicate a reply that is sent twice.
    fn envelope(
        &self,
        request: &TurnRequest,
        outcome: &TurnOutcome,
        content: Content,
        trace: Option<&TraceContext>,
    ) -> Result<Arc<MessageEnvelope>, BusError> {
        // Programs need the status of a reply that is no answer; an answer needs none.
        let status = (!outcome.is_answer()).then_some(&outcome.status);
        let mut reply = AgentReply::new(request.session.clone(), &**self.identity.name(), content);
        if let Some(status) = status {
            reply = reply
                .with_structured_data(json!({ "status": status }))
                .with_content_type(AgentReply::STATUS);
        }
        let mut envelope = MessageEnvelope::of(&reply)?
            .with_id(format!("{}.reply", outcome.turn))
            .with_source(Arc::clone(self.identity.name()));
        envelope.correlation_id = request.correlation_id.as_deref().map(Arc::from);
        envelope.destination = (!request.source.is_empty()).then(|| request.source.as_str().into());
        if let Some(trace) = trace {
            headers::set_trace(trace, &mut envelope.headers);
        }
        Ok(Arc::new(envelope))
    }
}
