//! A person's decisions about tool calls.

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{HandlerError, MessageContext, MessageHandler};
use rockbot_core::turn::Approval;

use crate::engine::{TurnError, TurnService};

/// Lets turns go on that wait for a decision. The channel answers for who decides: one that does not vouch for its
/// senders decides nothing.
pub(super) struct Decisions(pub(super) TurnService);

#[async_trait]
impl MessageHandler<Approval> for Decisions {
    async fn handle(&self, decision: Approval, cx: &MessageContext) -> Result<(), HandlerError> {
        if cx.delivery().trust < Trust::User {
            let why = "a decision about a tool call came over a channel that does not vouch for its senders";
            return Err(HandlerError::dead_letter(why));
        }
        match self.0.engine().decide(decision).await {
            Ok(()) => Ok(()),
            // It may be another agent's: all of them hear of it.
            Err(TurnError::NoSuchApproval { turn, .. }) if !self.0.engine().knows(&turn).await? => Ok(()),
            Err(error @ TurnError::NoSuchApproval { .. }) => Err(HandlerError::dead_letter(error)),
            Err(error) => Err(HandlerError::retry(error)),
        }
    }
}
