//! Asking models: the user's layers, then the client, with panics caught.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier};

use crate::layer::{Layers, Stack, call};

/// The one way to a model.
pub(crate) struct ChatDoor {
    client: Arc<dyn ChatClient>,
    stack: Option<Stack<ChatCall, ChatResponse>>,
}

impl fmt::Debug for ChatDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatDoor")
            .field("layered", &self.stack.is_some())
            .finish_non_exhaustive()
    }
}

impl ChatDoor {
    pub(crate) fn new(client: Arc<dyn ChatClient>, layers: Layers<ChatCall, ChatResponse>) -> Self {
        let stack = layers.around(&Arc::new(client.clone()), |client, call: ChatCall| async move {
            client.chat(call).await.map_err(BoxError::from)
        });
        Self { client, stack }
    }

    /// The id of the model that is asked for `tier`, where it is known.
    pub(crate) fn model_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        self.client.model_of(tier)
    }

    /// Whether no call is under way, as far as the client keeps count.
    pub(crate) fn is_idle(&self) -> bool {
        self.client.is_idle()
    }

    /// Asks once. A panic of the client or of a layer is an error like any other.
    pub(crate) async fn ask(&self, request: ChatCall) -> Result<ChatResponse, ChatError> {
        let answer = match &self.stack {
            None => AssertUnwindSafe(self.client.chat(request)).catch_unwind().await,
            Some(stack) => {
                AssertUnwindSafe(call(stack, request).map(|answer| answer.map_err(layer_error)))
                    .catch_unwind()
                    .await
            }
        };
        answer.unwrap_or_else(|_| {
            Err(ChatError::new(
                ChatErrorKind::Other,
                "the model client broke down; its log says why",
            ))
        })
    }
}

/// A stock time-out layer's error is a time-out.
fn layer_error(error: BoxError) -> ChatError {
    if error.is::<tower::timeout::error::Elapsed>() {
        return ChatError::new(
            ChatErrorKind::TimedOut,
            "the model took longer than a time-out layer allows",
        )
        .with_source(error);
    }
    ChatError::from(error)
}
