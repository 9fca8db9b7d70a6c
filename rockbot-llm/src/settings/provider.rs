//! Providers: the wire dialects that a model may be asked in.

use super::model_key::Field;
use crate::error::LlmConfigError;
use crate::http::base_url;

/// The wire dialect of a model's server: the setting `Provider`.
///
/// ```
/// use rockbot_core::config::Config;
/// use rockbot_llm::{LlmSettings, Provider};
///
/// let config = Config::new().with_text("agent.toml", r#"
///     [LLM.Balanced]
///     Endpoint = "http://localhost:11434/v1"
///     ModelId = "qwen3"
///     [LLM.High]
///     Provider = "anthropic"
///     ApiKey = "sk-ant-1234"
///     ModelId = "claude-opus-4-8"
/// "#)?;
/// let settings = LlmSettings::from_config(&config)?;
/// assert_eq!(settings.balanced.provider, Provider::OpenAi);
/// let high = settings.high.expect("it is set");
/// assert_eq!((high.provider, high.endpoint.as_str()), (Provider::Anthropic, "https://api.anthropic.com"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI, and all servers that are compatible with it: `openai`. The default.
    #[default]
    OpenAi,
    /// OpenAI's Responses API, for models that have only that: `openai-responses`.
    OpenAiResponses,
    /// Anthropic's Messages API: `anthropic`.
    Anthropic,
    /// No server: the built-in [`OfflineModel`](crate::OfflineModel), which is no LLM: `offline`.
    /// Endpoint, key and name of the model have no meaning then.
    Offline,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Offline];

    /// Returns the provider's name in settings: `openai`, `openai-responses`, `anthropic` or `offline`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Offline => "offline",
        }
    }

    /// Reads the value of the setting with the name `setting`, in any case, with hyphens or without:
    /// `OpenAIResponses`.
    pub(super) fn parse(value: &str, setting: &str) -> Result<Self, LlmConfigError> {
        let letters = |text: &str| text.trim().replace(['-', '_'], "").to_ascii_lowercase();
        let named = |provider: &Self| letters(provider.name()) == letters(value);
        let unknown = || LlmConfigError::UnknownProvider {
            setting: setting.to_owned(),
        };
        Self::ALL.into_iter().find(named).ok_or_else(unknown)
    }

    /// Returns `true` if servers of this provider may serve `other`, too, with the same key.
    pub(super) fn shares_servers_with(self, other: Self) -> bool {
        let is_openai = |provider| matches!(provider, Self::OpenAi | Self::OpenAiResponses);
        self == other || (is_openai(self) && is_openai(other))
    }

    /// Returns the error of a model without a key, and without an endpoint where `endpoint` names the
    /// setting of it: a user of a local server who follows the advice must not send prompts to a
    /// hosted one.
    pub(super) fn no_key(self, endpoint: Option<String>, key: String) -> LlmConfigError {
        match endpoint.filter(|_| self != Self::Anthropic) {
            Some(endpoint) => LlmConfigError::NoServer {
                endpoint,
                key,
                home: self.default_endpoint(),
            },
            None => LlmConfigError::NoKey { setting: key },
        }
    }

    /// Returns the endpoint when none is set.
    pub(super) fn default_endpoint(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => super::DEFAULT_ENDPOINT,
            Self::Anthropic => super::DEFAULT_ANTHROPIC_ENDPOINT,
            Self::Offline => "",
        }
    }

    /// Returns the model when none is set and the endpoint is the provider's own.
    pub(super) fn default_model(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => super::DEFAULT_MODEL,
            Self::Anthropic => super::DEFAULT_ANTHROPIC_MODEL,
            Self::Offline => self.name(),
        }
    }

    /// Returns `true` if `endpoint` is a server of the provider itself: the key of its variable may
    /// go there.
    pub(super) fn is_home(self, endpoint: &str) -> bool {
        let host = match self {
            Self::OpenAi | Self::OpenAiResponses => "api.openai.com",
            Self::Anthropic => "api.anthropic.com",
            Self::Offline => return false,
        };
        base_url(endpoint, &[]).is_some_and(|url| url.scheme() == "https" && url.host_str() == Some(host))
    }

    /// Returns the environment variable of the provider's own tools for a field of a model's settings.
    pub(super) fn variable(self, field: Field) -> Option<&'static str> {
        Some(match (self, field) {
            (Self::OpenAi | Self::OpenAiResponses, Field::Endpoint) => "OPENAI_BASE_URL",
            (Self::OpenAi | Self::OpenAiResponses, Field::ApiKey) => "OPENAI_API_KEY",
            (Self::OpenAi | Self::OpenAiResponses, Field::ModelId) => "OPENAI_MODEL",
            (Self::Anthropic, Field::Endpoint) => "ANTHROPIC_BASE_URL",
            (Self::Anthropic, Field::ApiKey) => "ANTHROPIC_API_KEY",
            (Self::Anthropic, Field::ModelId) => "ANTHROPIC_MODEL",
            (_, Field::Provider) | (Self::Offline, _) => return None,
        })
    }
}
