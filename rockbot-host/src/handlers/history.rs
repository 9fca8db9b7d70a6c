//! What was said in a conversation, for interfaces that show it.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::messaging::{HandlerError, MessageContext, MessageHandler};
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::user::{ConversationHistoryRequest, ConversationHistoryResponse, HistoryTurn};

/// Answers with the conversation, as far as it is remembered. A question that names no topic for its answer has
/// nobody to answer.
pub(super) struct Histories(pub(super) Arc<dyn ConversationMemory>);

#[async_trait]
impl MessageHandler<ConversationHistoryRequest> for Histories {
    async fn handle(&self, request: ConversationHistoryRequest, cx: &MessageContext) -> Result<(), HandlerError> {
        let principal = cx.principal(Some(&request.user_id));
        let turns = self.0.recent(&principal, &request.session_id, usize::MAX).await?;
        let turns = turns.into_iter().map(shown).collect();
        cx.reply(&ConversationHistoryResponse { turns }).await?;
        Ok(())
    }
}

fn shown(turn: ConversationTurn) -> HistoryTurn {
    HistoryTurn {
        role: turn.role,
        content: turn.content,
        timestamp: turn.timestamp,
    }
}
