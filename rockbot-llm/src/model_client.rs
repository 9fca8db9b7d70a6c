//! Clients and probes of whatever dialect the settings of a model name.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, OutputMode};

use crate::anthropic::AnthropicChat;
use crate::error::LlmConfigError;
use crate::http::{ServerCheck, check_server};
use crate::offline::OfflineModel;
use crate::openai::OpenAiChat;
use crate::responses::OpenAiResponses;
use crate::settings::{Provider, TierSettings};

/// Creates the client of the model that `settings` name, in the dialect of its provider.
///
/// # Errors
///
/// Returns an error if a setting cannot be used.
pub fn model_client(settings: &TierSettings) -> Result<Arc<dyn ChatClient>, LlmConfigError> {
    let client: Arc<dyn ChatClient> = match settings.provider {
        Provider::OpenAi => Arc::new(OpenAiChat::from_settings(settings)?),
        Provider::OpenAiResponses => Arc::new(OpenAiResponses::from_settings(settings)?),
        Provider::Anthropic => Arc::new(AnthropicChat::from_settings(settings)?),
        Provider::Offline => Arc::new(OfflineModel::new()),
    };
    Ok(match settings.output_mode {
        OutputMode::Auto => client,
        mode => Arc::new(WithOutputMode { client, mode }),
    })
}

/// A client whose model has a mode of structured output by configuration.
struct WithOutputMode {
    client: Arc<dyn ChatClient>,
    mode: OutputMode,
}

#[async_trait]
impl ChatClient for WithOutputMode {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.client.chat(call).await
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.client.describe(tier).with_output_mode(self.mode)
    }
}

/// Asks the model server of a tier for its list of models, within 5 seconds. Costs nothing.
///
/// The list is `GET {endpoint}/models` of an OpenAI-compatible server, and `GET
/// {endpoint}/v1/models` of Anthropic's. A server that lists its models without a key, as
/// OpenRouter does, reveals nothing about the key.
pub async fn probe(settings: &TierSettings) -> ServerCheck {
    let connection = match settings.provider {
        Provider::OpenAi => OpenAiChat::from_settings(settings).map(OpenAiChat::into_connection),
        Provider::OpenAiResponses => OpenAiResponses::from_settings(settings).map(OpenAiResponses::into_connection),
        Provider::Anthropic => AnthropicChat::from_settings(settings).map(AnthropicChat::into_connection),
        Provider::Offline => return ServerCheck::Offline,
    };
    match connection {
        Ok(connection) => check_server(&connection).await,
        Err(error) => ServerCheck::Unusable(error),
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::conformance;

    use super::*;

    #[test]
    fn a_mode_of_structured_output_changes_nothing_else_of_a_client() {
        conformance::chat_wrapper(|client| WithOutputMode {
            client,
            mode: OutputMode::Auto,
        });
    }
}
