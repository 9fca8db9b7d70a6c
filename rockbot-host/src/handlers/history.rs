//! The handler of requests for a conversation's history, for interfaces that show it.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{MessageContext, MessageHandler};
use rockbot_core::store::{ConversationMemory, ConversationPage, ConversationTurn};
use rockbot_core::user::{ConversationHistoryRequest, ConversationHistoryResponse, HistoryTurn};

/// Replies with the conversation, or the page of it that is asked for, as far as the conversation
/// memory keeps it. A request without a reply topic is not answered.
pub(super) struct Histories(pub(super) Arc<dyn ConversationMemory>);

#[async_trait]
impl MessageHandler<ConversationHistoryRequest> for Histories {
    async fn handle(&self, request: ConversationHistoryRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let principal = cx.principal(Some(&request.user_id));
        let session = &request.session_id;
        let page = match &request.page {
            Some(query) => self.0.page(&principal, session, query).await?,
            None => ConversationPage::new(self.0.recent(&principal, session, usize::MAX).await?, None),
        };
        let turns = page.entries.into_iter().map(history_turn).collect();
        let response = ConversationHistoryResponse::new(turns).with_earlier(page.earlier);
        cx.reply(&response).await?;
        Ok(())
    }
}

fn history_turn(turn: ConversationTurn) -> HistoryTurn {
    HistoryTurn::new(turn.role, turn.content, turn.timestamp)
}
