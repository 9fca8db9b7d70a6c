//! The chat client that applies behaviors: model settings, and tool calls in plain text for
//! models that need them.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelSettings, ModelTier};

use super::ModelBehaviors;
use crate::text_calling::TextCallingClient;

/// A chat client that applies the model settings of behaviors, and has models whose behavior says
/// so call tools in plain text.
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

    /// Sets the client for models with native tool calls.
    pub(crate) fn with_native(mut self, native: Arc<dyn ChatClient>) -> Self {
        self.native = native;
        self
    }
}

#[async_trait]
impl ChatClient for ModelBehaviorClient {
    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        let model = self.native.describe(call.request.tier.unwrap_or_default()).model;
        let behavior = model.map(|model| self.behaviors.of(&model)).unwrap_or_default();
        if let Some(settings) = behavior.model_settings {
            apply(&settings, &mut call);
        }
        if behavior.text_based_tool_calling {
            self.in_text.chat(call).await
        } else {
            self.native.chat(call).await
        }
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        let info = self.native.describe(tier);
        let own = info
            .model
            .as_ref()
            .and_then(|model| self.behaviors.model_settings(model));
        let Some(own) = own else { return info };
        let settings = match &info.settings {
            Some(base) => Some(Arc::new(own.over(base))),
            None => Some(own),
        };
        info.with_settings(settings)
    }
}

/// Sets the settings of a behavior in a request. They do not replace settings that the request
/// has already.
fn apply(settings: &Arc<ModelSettings>, call: &mut ChatCall) {
    // Copied only where something else, such as a layer that retries, holds the request.
    let request = Arc::make_mut(&mut call.request);
    request.settings = Some(match &request.settings {
        None => settings.clone(),
        Some(own) => own.over(settings).into(),
    });
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
