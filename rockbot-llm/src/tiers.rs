//! One client for every tier: it hands each call to the model that its tier deserves.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelTier};

use crate::offline::OfflineModel;
use crate::settings::{LlmConfigError, LlmSettings, TierSettings};

/// A [`ChatClient`] that chooses the model by the tier of the request.
///
/// A request without a tier is Balanced. Low and High are optional: without a model of their own they go to
/// Balanced. Each call is logged with `tier` and `model`.
///
/// ```
/// use rockbot_llm::{ChatTiers, OfflineModel};
///
/// let tiers = ChatTiers::new(OfflineModel::new()).low(OfflineModel::new());
/// ```
#[derive(Clone)]
pub struct ChatTiers {
    balanced: Arc<dyn ChatClient>,
    low: Option<Arc<dyn ChatClient>>,
    high: Option<Arc<dyn ChatClient>>,
}

impl ChatTiers {
    /// All tiers go to `balanced`.
    pub fn new(balanced: impl ChatClient) -> Self {
        Self {
            balanced: Arc::new(balanced),
            low: None,
            high: None,
        }
    }

    /// Low goes to `model`.
    #[must_use]
    pub fn low(mut self, model: impl ChatClient) -> Self {
        self.low = Some(Arc::new(model));
        self
    }

    /// High goes to `model`.
    #[must_use]
    pub fn high(mut self, model: impl ChatClient) -> Self {
        self.high = Some(Arc::new(model));
        self
    }

    /// The models that the environment of this process names, as [`LlmSettings`] says.
    ///
    /// # Errors
    ///
    /// Fails when it names none, or a setting cannot be used.
    pub fn from_env() -> Result<Self, LlmConfigError> {
        Self::from_settings(&LlmSettings::from_env()?)
    }

    /// The models that the environment of this process and the section `LLM` of a JSON file name.
    ///
    /// # Errors
    ///
    /// Fails when they name none, or a setting cannot be used.
    pub fn from_file(path: &Path) -> Result<Self, LlmConfigError> {
        Self::from_settings(&LlmSettings::load(Some(path))?)
    }

    /// The models that `settings` name.
    ///
    /// # Errors
    ///
    /// Fails when a setting cannot be used.
    pub fn from_settings(settings: &LlmSettings) -> Result<Self, LlmConfigError> {
        let client = |tier: &Option<TierSettings>| tier.as_ref().map(TierSettings::client).transpose();
        let mut tiers = Self::new(settings.balanced.client()?);
        if let Some(low) = client(&settings.low)? {
            tiers = tiers.low(low);
        }
        if let Some(high) = client(&settings.high)? {
            tiers = tiers.high(high);
        }
        Ok(tiers)
    }

    /// [`ChatTiers::from_env`], or the [`OfflineModel`] when nothing is set; then with a note for people.
    ///
    /// # Errors
    ///
    /// Fails when something is set and cannot be used.
    pub fn from_env_or_offline() -> Result<(Self, Option<String>), LlmConfigError> {
        Self::or_offline(LlmSettings::from_env())
    }

    fn or_offline(settings: Result<LlmSettings, LlmConfigError>) -> Result<(Self, Option<String>), LlmConfigError> {
        match settings {
            Ok(settings) => Ok((Self::from_settings(&settings)?, None)),
            Err(error @ LlmConfigError::NothingConfigured) => {
                let note = format!("{error}; until then the offline model answers, which is not an LLM");
                Ok((Self::new(OfflineModel::new()), Some(note)))
            }
            Err(error) => Err(error),
        }
    }

    fn model(&self, tier: ModelTier) -> &dyn ChatClient {
        let own = match tier {
            ModelTier::Low => self.low.as_ref(),
            ModelTier::Balanced => None,
            ModelTier::High => self.high.as_ref(),
        };
        &**own.unwrap_or(&self.balanced)
    }
}

#[async_trait]
impl ChatClient for ChatTiers {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let tier = call.request.tier.unwrap_or_default();
        let answer = self.model(tier).chat(call).await;
        match &answer {
            Ok(answer) => {
                let model = answer.model.as_deref().unwrap_or("unnamed");
                tracing::info!(tier = tier.name(), model, "model call");
            }
            Err(error) => tracing::warn!(tier = tier.name(), kind = ?error.kind(), %error, "model call failed"),
        }
        answer
    }
}

impl fmt::Debug for ChatTiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTiers")
            .field("has_low", &self.low.is_some())
            .field("has_high", &self.high.is_some())
            .finish_non_exhaustive()
    }
}
