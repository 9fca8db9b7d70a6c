//! Builds the gateway that a configuration describes.

use rockbot_core::chat::Ledger;
use rockbot_core::config::Config;

use super::{Fallback, Meter, ModelGateway, Permits, Retry};
use crate::error::LlmConfigError;
use crate::settings::{GatewaySettings, LlmSettings, TierSettings};
use crate::tiers::ChatTiers;

impl ModelGateway {
    /// Creates a gateway to the models that the section `LLM` of `config` names, see
    /// [`settings`](crate::settings).
    ///
    /// # Errors
    ///
    /// Returns an error if it names no model, or a setting cannot be used.
    pub fn from_config(config: &Config) -> Result<Self, LlmConfigError> {
        let models = LlmSettings::from_config(config)?;
        let fallback = fallback(&models.fallbacks)?;
        Ok(configured(
            ChatTiers::from_settings(&models)?,
            fallback,
            GatewaySettings::from_config(config)?,
        ))
    }

    /// Creates a gateway as [`ModelGateway::from_config`] does, or to the
    /// [`OfflineModel`](crate::OfflineModel) if no model is set: each of its answers names the
    /// settings to set.
    ///
    /// # Errors
    ///
    /// Returns an error if something is set and cannot be used.
    pub fn from_config_or_offline(config: &Config) -> Result<Self, LlmConfigError> {
        match Self::from_config(config) {
            Err(LlmConfigError::NothingConfigured) => {
                let settings = GatewaySettings::from_config(config)?;
                Ok(configured(ChatTiers::from_config_or_offline(config)?, None, settings))
            }
            gateway => gateway,
        }
    }
}

fn configured(models: ChatTiers, fallback: Option<Fallback>, settings: GatewaySettings) -> ModelGateway {
    let mut gateway = ModelGateway::builder(models);
    if let Some(fallback) = fallback {
        gateway = gateway.fallback(fallback);
    }
    gateway
        .layer(Retry::new(settings.retry))
        .layer(Permits::new(settings.permits))
        .layer(Meter::new().ledger(Ledger::new(settings.prices)))
        .layer(settings.time_limit)
        .build()
}

/// Builds the fallback models, each logged like the first model.
fn fallback(models: &[TierSettings]) -> Result<Option<Fallback>, LlmConfigError> {
    let mut fallback: Option<Fallback> = None;
    for model in models {
        let name = model.model.as_str();
        let client = ChatTiers::of_model(model)?;
        fallback = Some(match fallback {
            Some(fallback) => fallback.then(name, client),
            None => Fallback::to(name, client),
        });
    }
    Ok(fallback)
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::{ChatClient, ModelTier};

    use super::*;
    use crate::fixture::{Reply, Server};
    use crate::testing::call;

    #[tokio::test]
    async fn a_model_that_fails_is_replaced_by_the_next_one() {
        let answer = r#"{"model":"spare-1","choices":[{"message":{"content":"yes"}}]}"#;
        let server = Server::start([Reply::json(404, "{}"), Reply::json(200, answer)]).await;
        let config = Config::new().with_variables([
            ("ROCKBOT_LLM__BALANCED__ENDPOINT", server.endpoint()),
            ("ROCKBOT_LLM__BALANCED__MODELID", "first".to_owned()),
            ("ROCKBOT_LLM__FALLBACKS__1__MODELID", "spare".to_owned()),
            ("ROCKBOT_LLM__GATEWAY__RETRIES", "0".to_owned()),
        ]);
        let gateway = ModelGateway::from_config(&config).unwrap();
        assert_eq!(gateway.chat(call()).await.unwrap().model.as_deref(), Some("spare-1"));
        let requests = server.requests();
        assert!(requests[0].contains(r#""model":"first""#) && requests[1].contains(r#""model":"spare""#));
        assert_eq!(gateway.describe(ModelTier::Low).model.as_deref(), Some("first"));
        assert!(gateway.is_idle());
    }

    #[tokio::test]
    async fn models_of_one_gateway_may_have_different_providers() {
        let answer = r#"{"model":"spare-1","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn"}"#;
        let server = Server::start([Reply::json(404, "{}"), Reply::json(200, answer)]).await;
        let config = Config::new().with_variables([
            ("ROCKBOT_LLM__BALANCED__ENDPOINT", server.endpoint()),
            ("ROCKBOT_LLM__BALANCED__MODELID", "first".to_owned()),
            ("ROCKBOT_LLM__FALLBACKS__1__PROVIDER", "Anthropic".to_owned()),
            ("ANTHROPIC_BASE_URL", server.endpoint()),
            ("ANTHROPIC_API_KEY", "sk-ant-1234".to_owned()),
            ("ANTHROPIC_MODEL", "spare".to_owned()),
            ("ROCKBOT_LLM__GATEWAY__RETRIES", "0".to_owned()),
        ]);
        let gateway = ModelGateway::from_config(&config).unwrap();
        let answer = gateway.chat(call()).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.provider.as_deref()),
            ("yes", Some("anthropic"))
        );
        let requests = server.requests();
        assert!(requests[0].starts_with("POST /v1/chat/completions ") && !requests[0].contains("sk-ant-1234"));
        assert!(requests[1].starts_with("POST /v1/messages ") && requests[1].contains(r#""model":"spare""#));
    }

    #[tokio::test]
    async fn without_a_model_there_is_the_offline_one_and_settings_are_checked_all_the_same() {
        let config = |name, value| Config::new().with_variables([(name, value)]);
        let serialized = config("ROCKBOT_LLM__GATEWAY__PERMITS__TOTAL", "1");
        let gateway = ModelGateway::from_config_or_offline(&serialized).unwrap();
        assert_eq!(gateway.chat(call()).await.unwrap().model.as_deref(), Some("offline"));
        ModelGateway::from_config(&serialized).unwrap_err();
        let wrong = config("ROCKBOT_LLM__GATEWAY__PERMITS__TOTAL", "none");
        ModelGateway::from_config_or_offline(&wrong).unwrap_err();
    }
}
