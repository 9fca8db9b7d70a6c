//! Settings of the models and of the gateway in front of them: the section `LLM` of a [`Config`],
//! and the variables that the tools of OpenAI and of Anthropic know.
//!
//! Each setting is looked for in this order:
//!
//! 1. `ROCKBOT_LLM__BALANCED__PROVIDER`, `…__ENDPOINT`, `…__APIKEY`, `…__MODELID`, and the same
//!    for `LOW` and `HIGH`
//! 2. the same without the prefix: `LLM__Balanced__Endpoint`
//! 3. for Balanced: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL`, or the same with
//!    `ANTHROPIC_`
//! 4. files: `LLM.Balanced.Provider`, `…Endpoint`, `…ApiKey`, `…ModelId`
//!
//! `LLM.Endpoint` and so on mean Balanced too, in files and in the environment. Names are not
//! case-sensitive; an empty text counts as unset. A tier that names no endpoint uses Balanced's
//! endpoint and key, unless only one of the two is Anthropic's.
//!
//! `Provider` is `openai`, the default, for OpenAI and all compatible servers, `openai-responses`
//! for models that have only OpenAI's Responses API, `anthropic`, or `offline` for the built-in
//! model that needs no server and is not an LLM, see [`Provider`]; the tiers may mix them. A tier
//! that names neither provider nor endpoint has Balanced's provider. Balanced without a provider
//! is Anthropic's if only the variables of Anthropic name a key or an endpoint. A tier with
//! another provider than Balanced's uses the variables of that provider for settings that it
//! lacks, so `LLM.High.Provider = "anthropic"` and `ANTHROPIC_API_KEY` are enough; at Anthropic
//! itself the model is [`DEFAULT_ANTHROPIC_MODEL`] if none is set.
//!
//! `OPENAI_API_KEY` goes only to `OPENAI_BASE_URL` and to OpenAI itself, never to another
//! endpoint that a file or a variable of ours names; a key of a file never goes to
//! `OPENAI_BASE_URL`. The same holds for `ANTHROPIC_API_KEY`. A flat `LLM.ApiKey` of a file never
//! goes to a `LLM.Balanced.Endpoint` of the same file.
//!
//! `LLM.Fallbacks.{name}` holds `Provider`, `Endpoint`, `ApiKey` and `ModelId` of a model that is
//! asked when another one fails, in the order of the names; settings that it lacks are
//! Balanced's. `LLM.Embeddings` holds the last three of a model that makes vectors of texts, see
//! [`OpenAiEmbeddings::from_config`](crate::OpenAiEmbeddings::from_config): texts go to its
//! endpoint, so without this section no server is asked. The settings of the gateway stand beside
//! the tiers, see
//! [`GatewaySettings`]:
//!
//! | setting | default |
//! |---|---|
//! | `LLM.Balanced.Provider`, `LLM.Low.Provider`, … | the wire dialect: `openai`; or `openai-responses`, or `anthropic`; or `offline`, no model at all |
//! | `LLM.Gateway.Permits.Low`, `….Balanced`, `….High` | 8, 4 and 2 calls of the tier at a time |
//! | `LLM.Gateway.Permits.Total` | no limit for all tiers together; 1 is one call at a time |
//! | `LLM.Gateway.MaxWaiting`, `LLM.Gateway.MaxWait` | 1000 calls may wait for a permit, for `00:05:00` |
//! | `LLM.Gateway.Retries` | 3 |
//! | `LLM.Gateway.CallTimeout` | `00:10:00` for a whole answer; `00:00:00` is no limit, here and below |
//! | `LLM.Gateway.FirstPieceTimeout`, `LLM.Gateway.PauseTimeout` | none until the first piece, `00:02:00` between pieces |
//! | `LLM.PriceFile` | a file of prices, as [`PriceTable::from_file`](crate::PriceTable::from_file) reads it |
//! | `LLM.Prices.{model}.Input`, `….Cached`, `….Output` | US dollars for a million tokens; over the file, and that over the built-in table |
//!
//! A tier or a fallback model may also set values that its requests give to the model, see
//! [`Section::model_settings`](rockbot_core::config::Section::model_settings); none of them is
//! sent unless it is set, and none is taken over from Balanced. A tier that sets only these asks
//! Balanced's model. A request and the behavior of a model, `ModelBehaviors.Models.{prefix}`, win
//! over them.
//!
//! | setting in `LLM.{tier}` | value |
//! |---|---|
//! | `Temperature`, `TopP` | numbers of at least 0, and above 0 up to 1 |
//! | `MaxOutputTokens` | the maximum length of an answer |
//! | `Seed`, `StopSequences` | a whole number; a list of texts |
//! | `ReasoningEffort` | `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or a word of the provider's own |
//! | `ParallelToolCalls` | `false` for at most one tool call with each answer |
//! | `StrictTools` | `true` for OpenAI's strict mode, in which the server samples only calls that match the schemas; default `false` |
//! | `Images` | `false` for a model that takes no images and files: it reads their descriptions instead |
//! | `ExtraBody` | a section of members that are added to the body, or the same as JSON text |
//! | `StructuredOutput` | how the model is made to answer in a schema: `native`, `tool` or `prompt`, see `OutputMode`; default `auto` |
//! | `ExtraHeaders` | a section of headers that are added; no message shows their values |
//!
//! A dialect leaves out settings that it has no name for: the Responses API has neither a seed
//! nor stop sequences, Anthropic's has neither a seed nor a strict mode. The strict form of a
//! schema requires all arguments, and optional ones may be `null`; a tool whose schema has no
//! such form is sent without it, and `chat doctor` names it. With Anthropic the effort becomes a
//! thinking budget, which comes on top of `MaxOutputTokens`: 1024 tokens for `minimal`, 4096 for
//! `low`, 8192 for `medium`, 16384 for `high`, 32768 for `xhigh` and `max`, none for `none`; a
//! model that thinks accepts neither `Temperature` nor `TopP`, so these are left out then.
//!
//! ```
//! use rockbot_core::config::Config;
//! use rockbot_llm::LlmSettings;
//!
//! let config = Config::new().with_text("agent.json", r#"{
//!     "LLM": {
//!         "Balanced": { "Endpoint": "https://openrouter.ai/api/v1", "ApiKey": "sk-or-1234", "ModelId": "vendor/middle" },
//!         "Low": { "ModelId": "vendor/small", "Temperature": 0.2 }
//!     }
//! }"#)?;
//! let settings = LlmSettings::from_config(&config)?;
//! let low = settings.low.expect("it is set");
//! assert_eq!(low.endpoint, "https://openrouter.ai/api/v1");
//! assert_eq!(low.model_settings.and_then(|settings| settings.temperature), Some(0.2));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod discovered;
mod gateway;
mod model_key;
mod provider;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rockbot_core::Secret;
use rockbot_core::chat::{ModelSettings, ModelTier, OutputMode};
use rockbot_core::config::Config;

pub use self::gateway::GatewaySettings;
pub use self::provider::Provider;
pub use crate::error::LlmConfigError;

use self::discovered::DiscoveredSettings;
use crate::http::{ClientBuilder, SettingNames, shown_unchecked};

/// The endpoint when only a key is set.
pub const DEFAULT_ENDPOINT: &str = "https://api.openai.com/v1";

/// The model when only a key is set.
pub const DEFAULT_MODEL: &str = "gpt-4.1-mini";

/// The endpoint of Anthropic's models when only a key is set.
pub const DEFAULT_ANTHROPIC_ENDPOINT: &str = "https://api.anthropic.com";

/// The model of Anthropic when only a key is set.
pub const DEFAULT_ANTHROPIC_MODEL: &str = "claude-sonnet-4-6";

/// The models to use: one for the ordinary case, others for lower and higher tiers if wanted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LlmSettings {
    /// The model for the ordinary case.
    pub balanced: TierSettings,
    /// A model for simple work; without it Balanced does it.
    pub low: Option<TierSettings>,
    /// A model for hard work; without it Balanced does it.
    pub high: Option<TierSettings>,
    /// Models for when one fails, in order: `LLM.Fallbacks`.
    pub fallbacks: Vec<TierSettings>,
}

/// The settings of one model.
#[derive(Clone)]
#[non_exhaustive]
pub struct TierSettings {
    /// The wire dialect of the server.
    pub provider: Provider,
    /// The server's base URL.
    pub endpoint: String,
    /// The key, unless the server needs none.
    pub api_key: Option<Secret>,
    /// The model's name at that server.
    pub model: String,
    /// Settings that are given to the model, such as the temperature.
    pub model_settings: Option<Arc<ModelSettings>>,
    /// The way in which the model is made to answer in a schema.
    pub output_mode: OutputMode,
    /// The place where these settings are set, for messages.
    pub names: SettingNames,
}

impl fmt::Debug for TierSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierSettings")
            .field("provider", &self.provider)
            .field("endpoint", &shown_unchecked(&self.endpoint))
            .field("has_api_key", &self.api_key.is_some())
            .field("model", &self.model)
            .field("model_settings", &self.model_settings)
            .field("output_mode", &self.output_mode)
            .finish_non_exhaustive()
    }
}

impl LlmSettings {
    /// Creates the settings of one model, which does the work of all tiers.
    pub fn new(balanced: TierSettings) -> Self {
        Self {
            balanced,
            low: None,
            high: None,
            fallbacks: Vec::new(),
        }
    }

    /// Sets a model for simple work; without it Balanced does it.
    #[must_use]
    pub fn with_low(mut self, low: TierSettings) -> Self {
        self.low = Some(low);
        self
    }

    /// Sets a model for hard work; without it Balanced does it.
    #[must_use]
    pub fn with_high(mut self, high: TierSettings) -> Self {
        self.high = Some(high);
        self
    }

    /// Sets the models that are asked when one fails, in order.
    #[must_use]
    pub fn with_fallbacks(mut self, fallbacks: Vec<TierSettings>) -> Self {
        self.fallbacks = fallbacks;
        self
    }

    /// Reads the settings in the environment of this process.
    ///
    /// # Errors
    ///
    /// Returns an error if there are none, or one cannot be used.
    pub fn from_env() -> Result<Self, LlmConfigError> {
        Self::load(None)
    }

    /// Reads the settings in the environment of this process and in the file at `path`, if one is
    /// given.
    ///
    /// # Errors
    ///
    /// Returns an error if there are none, one cannot be used, or the file cannot be read.
    pub fn load(path: Option<&Path>) -> Result<Self, LlmConfigError> {
        Self::read(path, std::env::vars_os())
    }

    /// Reads the settings in `variables`, which stand for the environment, and in the file at `path`,
    /// if one is given.
    ///
    /// ```
    /// # use rockbot_llm::LlmSettings;
    /// let settings = LlmSettings::read(None, [("OPENAI_API_KEY", "sk-1234"), ("OPENAI_MODEL", "gpt-5")])?;
    /// assert_eq!(settings.balanced.model, "gpt-5");
    /// # Ok::<_, rockbot_llm::LlmConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error as [`LlmSettings::load`] does.
    pub fn read<K, V>(path: Option<&Path>, variables: impl IntoIterator<Item = (K, V)>) -> Result<Self, LlmConfigError>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let config = path.map_or_else(|| Ok(Config::new()), |path| Config::new().with_file(path))?;
        Self::from_config(&config.with_variables(variables))
    }

    /// Reads the settings in the section `LLM` of `config` and in the variables that it knows.
    ///
    /// # Errors
    ///
    /// Returns an error if there are none, one cannot be used, or a variable `ROCKBOT_LLM__…` is no
    /// setting.
    pub fn from_config(config: &Config) -> Result<Self, LlmConfigError> {
        let found = DiscoveredSettings::read(config)?;
        if found.is_empty() {
            return Err(LlmConfigError::NothingConfigured);
        }
        let unknown = found.unknown_providers();
        let balanced = match found.balanced() {
            Ok(balanced) if unknown.is_empty() => balanced,
            balanced => return Err(LlmConfigError::unknown_providers(unknown, balanced.err())),
        };
        Ok(Self {
            low: found.beside(ModelTier::Low, &balanced)?,
            high: found.beside(ModelTier::High, &balanced)?,
            fallbacks: found.fallbacks(&balanced)?,
            balanced,
        })
    }
}

impl TierSettings {
    /// Reads the settings of the model in `LLM.Embeddings` of `config`; `None` if the section is empty.
    ///
    /// # Errors
    ///
    /// Returns an error if something in the section `LLM` cannot be used.
    pub fn of_embeddings(config: &Config) -> Result<Option<Self>, LlmConfigError> {
        DiscoveredSettings::read(config)?.embeddings()
    }

    /// Sets the key of a client, the settings of its model, and the names of its settings.
    pub(crate) fn apply<O>(&self, builder: ClientBuilder<O>) -> ClientBuilder<O> {
        let builder = builder.setting_names(self.names.clone());
        let builder = match &self.model_settings {
            Some(settings) => builder.model_settings(ModelSettings::clone(settings)),
            None => builder,
        };
        match &self.api_key {
            Some(key) => builder.api_key(key.clone()),
            None => builder,
        }
    }
}
