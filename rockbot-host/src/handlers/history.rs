//! The handler of requests for a conversation's history, for interfaces that show it.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{MessageContext, MessageHandler};
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::user::{ConversationHistoryRequest, ConversationHistoryResponse, HistoryTurn};

/// Replies with the conversation, as far as the conversation memory keeps it. A request without a reply topic is not
/// answered.
pub(super) struct Histories(pub(super) Arc<dyn ConversationMemory>);

#[async_trait]
impl MessageHandler<ConversationHistoryRequest> for Histories {
    async fn handle(&self, request: ConversationHistoryRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let principal = cx.principal(Some(&request.user_id));
        let turns = self.0.recent(&principal, &request.session_id, usize::MAX).await?;
        let turns = turns.into_iter().map(history_turn).collect();
        cx.reply(&ConversationHistoryResponse::new(turns)).await?;
        Ok(())
    }
}

fn history_turn(turn: ConversationTurn) -> HistoryTurn {
    HistoryTurn::new(turn.role, turn.content, turn.timestamp)
}
