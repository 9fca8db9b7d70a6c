//! What clients take from the settings of a tier.

use super::OpenAiChat;
use super::builder::OpenAiBuilder;
use crate::http::{ServerCheck, check_server};
use crate::settings::TierSettings;

impl<O> OpenAiBuilder<O> {
    /// Sets the key and the names of the settings.
    pub(super) fn settings(self, settings: &TierSettings) -> Self {
        let builder = self.setting_names(settings.names.clone());
        match &settings.api_key {
            Some(key) => builder.api_key(key.clone()),
            None => builder,
        }
    }
}

/// Asks the model server of a tier for its models: `GET {endpoint}/models`, within 5 seconds. Costs nothing.
///
/// A server that lists its models without a key, as OpenRouter does, reveals nothing about the key.
pub async fn probe(settings: &TierSettings) -> ServerCheck {
    match OpenAiChat::from_settings(settings) {
        Ok(client) => check_server(client.connection()).await,
        Err(error) => ServerCheck::Unusable(error),
    }
}
