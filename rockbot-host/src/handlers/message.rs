//! The handler of users' messages: from a message to a turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::{Origin, Trust};
use rockbot_core::messaging::{HandlerError, MessageContext, MessageEnvelope, MessageHandler};
use rockbot_core::support::{json, loggable, reference};
use rockbot_core::turn::{JournalError, TurnRequest};
use rockbot_core::user::{AgentReply, UserMessage, UserProxyTopics};
use rockbot_core::{BoxError, TraceContext};

use super::progress::progress_of;
use super::{UserOptions, is_for_another};
use crate::engine::{TurnCall, TurnError, TurnService};

/// Submits users' messages to the turn engine. A message is acknowledged once its turn is in the
/// journal; its final reply follows when the turn ends.
pub(super) struct UserMessages {
    pub(super) turns: TurnService,
    pub(super) options: UserOptions,
    /// Maximum time that a message waits for room in the backlog before the bus delivers it again.
    pub(super) patience: Duration,
}

/// Maximum number of deliveries of one message, the first included.
pub(super) const MAX_ATTEMPTS: u32 = 4;

/// Returns the conversation of a message, which is its partition: within one, messages keep their
/// order.
pub(super) fn session_of(envelope: &MessageEnvelope) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SessionField {
        session_id: String,
    }
    let field: SessionField = json::read_any_case(&envelope.body).ok()?;
    Some(field.session_id)
}

#[async_trait]
impl MessageHandler<UserMessage> for UserMessages {
    async fn handle(&self, message: UserMessage, cx: &MessageContext) -> Result<(), BoxError> {
        if is_for_another(message.target_agent.as_deref(), cx) {
            return Ok(());
        }
        if message.content.is_blank() {
            refuse(&message, cx, "The message is empty: write what you would like to know.").await?;
            return Err(HandlerError::dead_letter("a user's message without content")
                .answered()
                .into());
        }
        let (progress, reports) = progress_of(self.turns.engine(), &message, cx);
        let request = self.request(&message, cx);
        match self
            .turns
            .accept(TurnCall::new(request, progress), reports, self.patience)
            .await
        {
            Ok(()) => Ok(()),
            // The process that has the turn sends its reply.
            Err(TurnError::Elsewhere(_)) if self.turns.engine().is_clustered() => Ok(()),
            Err(
                error @ (TurnError::Journal(JournalError::Conflict { .. })
                | TurnError::Content(_)
                | TurnError::IdTooLong { .. }),
            ) => {
                refuse(&message, cx, &format!("This message cannot be answered: {error}.")).await?;
                Err(HandlerError::dead_letter(error).answered().into())
            }
            // The bus will not deliver it again, so the user must be notified now.
            Err(error) if cx.delivery().attempt >= MAX_ATTEMPTS && !matches!(error, TurnError::Halted) => {
                refuse(&message, cx, &told(&error)).await?;
                Err(HandlerError::dead_letter(error).answered().into())
            }
            // The message stays on the bus: another process accepts it, or this process a little
            // later.
            Err(error) => Err(error.into()),
        }
    }
}

impl UserMessages {
    fn request(&self, message: &UserMessage, cx: &MessageContext) -> TurnRequest {
        let envelope = cx.envelope();
        let reply_to = envelope.reply_to.as_deref().unwrap_or(UserProxyTopics::USER_RESPONSE);
        let correlation = envelope.correlation_id.as_deref();
        let mut request = TurnRequest::new(&message.session_id, &envelope.message_id, message.content.clone())
            .with_principal(cx.principal(Some(&message.user_id)))
            .with_source(&*envelope.source)
            .with_origin(Origin::Bus)
            .with_trust(cx.delivery().trust.min(Trust::User))
            .with_busy(self.options.busy)
            .with_reply_to(reply_to)
            .with_correlation_id(correlation.unwrap_or(envelope.message_id.as_str()));
        request.trace = cx.trace().map(TraceContext::traceparent);
        request
    }
}

/// Returns the words for the sender of a message that was not accepted: a full backlog as it is,
/// another error by its reference.
fn told(error: &TurnError) -> String {
    if let TurnError::Busy(_) = error {
        return format!("This message could not be accepted: {error}.");
    }
    let reference = reference(error);
    tracing::error!(reference, error = %loggable(&error.to_string()), "message not accepted; its sender is told the reference");
    format!(
        "This message could not be accepted: the agent has a failure of its own, which its operator finds under the \
         reference {reference}. Try it again later."
    )
}

/// Sends the final reply to a message that does not become a turn.
async fn refuse(message: &UserMessage, cx: &MessageContext, reason: &str) -> Result<(), BoxError> {
    let reply = AgentReply::new(message.session_id.clone(), &**cx.identity().name(), reason);
    let envelope = MessageEnvelope::of(&reply)?.with_source(Arc::clone(cx.identity().name()));
    let topic = cx
        .envelope()
        .reply_to
        .as_deref()
        .unwrap_or(UserProxyTopics::USER_RESPONSE);
    let answer = Arc::new(envelope.in_reply_to(cx.envelope()));
    cx.publisher().publish(topic, answer).await?;
    Ok(())
}
