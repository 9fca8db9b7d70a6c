//! The handler of a person's decisions about tool calls.

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{HandlerError, MessageContext, MessageHandler};
use rockbot_core::turn::Approval;

use crate::engine::{TurnError, TurnService};

/// Applies decisions to the turns that wait for them. Decisions over a channel that does not
/// authenticate its senders are rejected: the approval would be worth nothing if any process
/// could send it.
pub(super) struct Decisions(pub(super) TurnService);

#[async_trait]
impl MessageHandler<Approval> for Decisions {
    async fn handle(&self, decision: Approval, cx: &MessageContext) -> Result<(), BoxError> {
        if cx.delivery().trust < Trust::User {
            let reason = "decision about a tool call rejected: the channel does not authenticate its senders";
            return Err(HandlerError::dead_letter(reason).into());
        }
        let principal = cx.principal(decision.user_id.as_deref());
        match self.0.engine().decide(decision, &principal).await {
            Ok(()) => Ok(()),
            // All agents receive the decision, and the turn belongs to another agent.
            Err(TurnError::NoSuchApproval { turn, .. }) if !self.0.engine().knows(&turn).await? => Ok(()),
            Err(error @ TurnError::NoSuchApproval { .. }) => Err(HandlerError::dead_letter(error).into()),
            Err(error) => Err(error.into()),
        }
    }
}
