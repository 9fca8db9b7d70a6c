//! The handler of users' feedback: thumbs up and thumbs down.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::messaging::{MessageContext, MessageHandler};
use rockbot_core::store::{FeedbackEntry, FeedbackSignal, FeedbackStore};
use rockbot_core::user::UserFeedback;
use rockbot_core::{BoxError, Clock, IdSource};

use super::is_for_another;

/// Appends feedback to the feedback store.
pub(super) struct Thumbs {
    pub(super) store: Arc<dyn FeedbackStore>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl MessageHandler<UserFeedback> for Thumbs {
    async fn handle(&self, feedback: UserFeedback, cx: &MessageContext) -> Result<(), BoxError> {
        if is_for_another(feedback.agent_name.as_deref(), cx) {
            return Ok(());
        }
        let (signal_type, liked) = if feedback.is_positive {
            (FeedbackSignal::UserThumbsUp, "liked")
        } else {
            (FeedbackSignal::UserThumbsDown, "disliked")
        };
        let entry = FeedbackEntry::new(
            self.ids.next_id(),
            feedback.session_id,
            signal_type,
            format!("The user {liked} the reply to message {}.", feedback.message_id),
            self.clock.now(),
        );
        Ok(self.store.append(&cx.principal(Some(&feedback.user_id)), entry).await?)
    }
}
