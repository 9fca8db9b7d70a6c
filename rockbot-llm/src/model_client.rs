//! Clients and probes of whatever dialect the settings of a model name.

use std::sync::Arc;

use rockbot_core::chat::ChatClient;

use crate::anthropic::AnthropicChat;
use crate::error::LlmConfigError;
use crate::http::{ServerCheck, check_server};
use crate::openai::OpenAiChat;
use crate::responses::OpenAiResponses;
use crate::settings::{Provider, TierSettings};

/// Creates the client of the model that `settings` name, in the dialect of its provider.
pub(crate) fn model_client(settings: &TierSettings) -> Result<Arc<dyn ChatClient>, LlmConfigError> {
    Ok(match settings.provider {
        Provider::OpenAi => Arc::new(OpenAiChat::from_settings(settings)?),
        Provider::OpenAiResponses => Arc::new(OpenAiResponses::from_settings(settings)?),
        Provider::Anthropic => Arc::new(AnthropicChat::from_settings(settings)?),
    })
}

/// Asks the model server of a tier for its list of models, within 5 seconds. Costs nothing.
///
/// The list is `GET {endpoint}/models` of an OpenAI-compatible server, and `GET {endpoint}/v1/models` of Anthropic's. A
/// server that lists its models without a key, as OpenRouter does, reveals nothing about the key.
pub async fn probe(settings: &TierSettings) -> ServerCheck {
    let connection = match settings.provider {
        Provider::OpenAi => OpenAiChat::from_settings(settings).map(OpenAiChat::into_connection),
        Provider::OpenAiResponses => OpenAiResponses::from_settings(settings).map(OpenAiResponses::into_connection),
        Provider::Anthropic => AnthropicChat::from_settings(settings).map(AnthropicChat::into_connection),
    };
    match connection {
        Ok(connection) => check_server(&connection).await,
        Err(error) => ServerCheck::Unusable(error),
    }
}
