//! The chat client that applies behaviors: models that need it call tools in plain text.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};

use super::ModelBehaviors;
use crate::text_calling::TextCallingClient;

/// A chat client that asks most models natively, and those whose behavior says so with tool calls in plain text.
pub(crate) struct ModelBehaviorClient {
    native: Arc<dyn ChatClient>,
    in_text: TextCallingClient<Arc<dyn ChatClient>>,
    behaviors: Arc<ModelBehaviors>,
}

impl ModelBehaviorClient {
    /// Wraps `client` according to `behaviors`.
    pub(crate) fn new(client: Arc<dyn ChatClient>, behaviors: Arc<ModelBehaviors>) -> Self {
        Self {
            in_text: TextCallingClient::new(client.clone()),
            native: client,
            behaviors,
        }
    }
}

#[async_trait]
impl ChatClient for ModelBehaviorClient {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let model = self.native.describe(call.request.tier.unwrap_or_default()).model;
        match model.is_some_and(|model| self.behaviors.of(&model).text_based_tool_calling) {
            true => self.in_text.chat(call).await,
            false => self.native.chat(call).await,
        }
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.native.describe(tier)
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::conformance;

    use super::*;

    #[test]
    fn it_describes_the_models_of_the_wrapped_client() {
        conformance::chat_wrapper(|client| ModelBehaviorClient::new(client, Arc::default()));
    }
}
