//! One client for every tier, which routes each call to the model of its tier.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, WatchedDeltas};
use rockbot_core::config::Config;
use rockbot_core::support::loggable;

use crate::error::LlmConfigError;
use crate::model_client::model_client;
use crate::offline::OfflineModel;
use crate::retry::Retried;
use crate::settings::{LlmSettings, TierSettings};

/// A [`ChatClient`] that chooses the model by the tier of the request.
///
/// A request without a tier is Balanced. Low and High are optional: without a model of their own
/// they go to Balanced, and a call whose own model fails in a way that another may not is sent to
/// Balanced once. Each call is logged with `tier` and `model`.
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
    /// Creates a client that routes all tiers to `balanced`.
    pub fn new(balanced: impl ChatClient) -> Self {
        Self {
            balanced: Arc::new(balanced),
            low: None,
            high: None,
        }
    }

    /// Sets the model of Low.
    #[must_use]
    pub fn low(mut self, model: impl ChatClient) -> Self {
        self.low = Some(Arc::new(model));
        self
    }

    /// Sets the model of High.
    #[must_use]
    pub fn high(mut self, model: impl ChatClient) -> Self {
        self.high = Some(Arc::new(model));
        self
    }

    /// Creates a client of the models that the environment of this process names, see [`LlmSettings`].
    ///
    /// # Errors
    ///
    /// Returns an error if it names none, or a setting cannot be used.
    pub fn from_env() -> Result<Self, LlmConfigError> {
        Self::from_settings(&LlmSettings::from_env()?)
    }

    /// Creates a client of the models that the environment of this process and the section `LLM` of a
    /// JSON or TOML file name.
    ///
    /// # Errors
    ///
    /// Returns an error if they name none, or a setting cannot be used.
    pub fn from_file(path: &Path) -> Result<Self, LlmConfigError> {
        Self::from_settings(&LlmSettings::load(Some(path))?)
    }

    /// Creates a client of the models that the section `LLM` of `config` and the variables that it
    /// knows name.
    ///
    /// # Errors
    ///
    /// Returns an error if they name none, or a setting cannot be used.
    pub fn from_config(config: &Config) -> Result<Self, LlmConfigError> {
        Self::from_settings(&LlmSettings::from_config(config)?)
    }

    /// Creates a client as [`ChatTiers::from_config`] does, or of the [`OfflineModel`] if nothing is
    /// set.
    ///
    /// # Errors
    ///
    /// Returns an error if something is set and cannot be used.
    pub fn from_config_or_offline(config: &Config) -> Result<Self, LlmConfigError> {
        Self::or_offline(LlmSettings::from_config(config))
    }

    /// Creates a client of the models that `settings` name.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting cannot be used.
    pub fn from_settings(settings: &LlmSettings) -> Result<Self, LlmConfigError> {
        let client = |tier: &Option<TierSettings>| tier.as_ref().map(model_client).transpose();
        Ok(Self {
            balanced: model_client(&settings.balanced)?,
            low: client(&settings.low)?,
            high: client(&settings.high)?,
        })
    }

    /// Creates a client that routes all tiers to the model that `settings` name.
    pub(crate) fn of_model(settings: &TierSettings) -> Result<Self, LlmConfigError> {
        Ok(Self {
            balanced: model_client(settings)?,
            low: None,
            high: None,
        })
    }

    /// Creates a client as [`ChatTiers::from_env`] does, or of the [`OfflineModel`] if nothing is set.
    ///
    /// # Errors
    ///
    /// Returns an error if something is set and cannot be used.
    pub fn from_env_or_offline() -> Result<Self, LlmConfigError> {
        Self::or_offline(LlmSettings::from_env())
    }

    fn or_offline(settings: Result<LlmSettings, LlmConfigError>) -> Result<Self, LlmConfigError> {
        match settings {
            Ok(settings) => Self::from_settings(&settings),
            Err(LlmConfigError::NothingConfigured) => Ok(Self::new(OfflineModel::new())),
            Err(error) => Err(error),
        }
    }

    /// Returns the tier's own client, if it is not Balanced's.
    fn own_client(&self, tier: ModelTier) -> Option<&dyn ChatClient> {
        let own = match tier {
            ModelTier::Low => self.low.as_ref(),
            ModelTier::Balanced => None,
            ModelTier::High => self.high.as_ref(),
        };
        own.map(|client| &**client)
    }

    /// Asks the model of Low or High. If it fails with an error that another model may not have,
    /// Balanced's model is asked once. When both fail, the error is the first model's.
    async fn chat_or_balanced(
        &self,
        own: &dyn ChatClient,
        tier: ModelTier,
        mut call: ChatCall,
    ) -> Result<ChatResponse, ChatError> {
        let deltas = WatchedDeltas::watch(&mut call);
        let error = match own.chat(call.clone()).await {
            Err(error) if error.kind().other_model_helps() => error,
            answer => return answer,
        };
        note(tier, &Err(&error), false);
        // The streamed pieces of the first answer are taken back.
        deltas.reset();
        let answer = self.balanced.chat(call).await.map_err(|_| error)?;
        Ok(self.balanced.name_model(answer, tier))
    }
}

/// Logs a call of a model. An attempt that a retry layer makes is logged as a detail: the layer
/// logs the failure once.
fn note(tier: ModelTier, answer: &Result<&ChatResponse, &ChatError>, is_attempt: bool) {
    match answer {
        Ok(answer) => {
            let model = answer.model.as_deref().unwrap_or("unnamed");
            tracing::info!(tier = tier.name(), model, "model call");
        }
        Err(error) if is_attempt => {
            tracing::debug!(tier = tier.name(), kind = ?error.kind(), "attempt of a model call failed");
        }
        Err(error) => {
            let kind = error.kind();
            let error = error.to_string();
            tracing::warn!(tier = tier.name(), ?kind, error = %loggable(&error), "model call failed");
        }
    }
}

#[async_trait]
impl ChatClient for ChatTiers {
    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.own_client(tier).unwrap_or(&*self.balanced).describe(tier)
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let tier = call.request.tier.unwrap_or_default();
        let is_attempt = call.cx.extension::<Retried>().is_some();
        let answer = match self.own_client(tier) {
            Some(own) => self.chat_or_balanced(own, tier, call).await,
            None => self.balanced.chat(call).await,
        };
        note(tier, &answer.as_ref(), is_attempt);
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

#[cfg(test)]
mod tests {
    use rockbot_core::CallContext;
    use rockbot_core::chat::{ChatErrorKind, ChatMessage, ChatRequest};
    use rockbot_core::testing::{ScriptedModel, conformance};

    use super::*;
    use crate::fixture::{Reply, Server};
    use crate::testing::Log;

    /// A model that answers with its name, or fails when it has none.
    struct Named(&'static str);

    #[async_trait]
    impl ChatClient for Named {
        async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
            match self.0 {
                "" => Err(ChatError::new(ChatErrorKind::Overloaded, "busy")),
                name => Ok(ChatResponse::text(name).with_model(name)),
            }
        }

        fn describe(&self, _: ModelTier) -> ModelInfo {
            ModelInfo::unknown()
        }
    }

    fn call(tier: Option<ModelTier>) -> ChatCall {
        let request = ChatRequest::new([ChatMessage::user("hi")]).with_tier(tier);
        ChatCall::new(request, CallContext::new("s"))
    }

    /// Returns who answers calls without a tier, of Low, of Balanced and of High.
    async fn answers(tiers: ChatTiers) -> Vec<String> {
        let mut names = Vec::new();
        for tier in [
            None,
            Some(ModelTier::Low),
            Some(ModelTier::Balanced),
            Some(ModelTier::High),
        ] {
            names.push(tiers.chat(call(tier)).await.unwrap().text);
        }
        names
    }

    #[tokio::test]
    async fn each_tier_has_its_model_and_balanced_stands_in() {
        let balanced = || ChatTiers::new(Named("b"));
        assert_eq!(answers(balanced()).await, ["b", "b", "b", "b"]);
        assert_eq!(answers(balanced().low(Named("l"))).await, ["b", "l", "b", "b"]);
        assert_eq!(
            answers(balanced().low(Named("l")).high(Named("h"))).await,
            ["b", "l", "b", "h"]
        );
    }

    #[tokio::test]
    async fn a_failing_model_of_low_or_high_has_balanced_asked_once() {
        let tiers = ChatTiers::new(Named("b")).low(Named("")).high(Named(""));
        assert_eq!(answers(tiers).await, ["b", "b", "b", "b"]);
        let balanced = ScriptedModel::new();
        let low = ScriptedModel::new();
        let balanced = balanced.fails(ChatErrorKind::Auth);
        let low = low.fails(ChatErrorKind::Overloaded);
        let tiers = ChatTiers::new(balanced.clone()).low(low);
        let error = tiers.chat(call(Some(ModelTier::Low))).await.unwrap_err();
        assert_eq!(
            (error.kind(), balanced.requests().len()),
            (ChatErrorKind::Overloaded, 1)
        );
        let cancelled = ScriptedModel::new().fails(ChatErrorKind::Cancelled);
        let tiers = ChatTiers::new(Named("b")).high(cancelled);
        let error = tiers.chat(call(Some(ModelTier::High))).await.unwrap_err();
        assert_eq!(error.kind(), ChatErrorKind::Cancelled);
    }

    #[test]
    fn each_tier_is_described_by_its_own_client() {
        conformance::chat_wrapper(ChatTiers::new);
        conformance::chat_wrapper(|client| ChatTiers::new(client.clone()).low(client.clone()).high(client));
    }

    #[tokio::test]
    async fn each_call_is_logged_with_tier_and_model() {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let tiers = ChatTiers::new(Named("b")).high(Named(""));
        tiers.chat(call(Some(ModelTier::Low))).await.unwrap();
        tiers.chat(call(Some(ModelTier::High))).await.unwrap();
        let expected = [
            "message=model call tier=\"Low\" model=\"b\" ",
            "message=model call failed tier=\"High\" kind=Overloaded error=busy ",
            "message=model call tier=\"High\" model=\"b\" ",
        ];
        assert_eq!(log.lines(), expected);
    }

    #[tokio::test]
    async fn settings_become_clients() {
        let replies = ["balanced", "low"]
            .map(|text| Reply::json(200, &format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#)));
        let server = Server::start(replies).await;
        let endpoint = server.endpoint();
        let variables = [
            ("ROCKBOT_LLM__BALANCED__ENDPOINT", endpoint.as_str()),
            ("ROCKBOT_LLM__BALANCED__MODELID", "large"),
            ("ROCKBOT_LLM__LOW__MODELID", "small"),
        ];
        let settings = LlmSettings::read(None, variables).unwrap();
        let tiers = ChatTiers::from_settings(&settings).unwrap();
        assert_eq!(tiers.chat(call(None)).await.unwrap().text, "balanced");
        assert_eq!(tiers.chat(call(Some(ModelTier::Low))).await.unwrap().text, "low");
        let requests = server.requests();
        assert!(requests[0].contains(r#""model":"large""#) && requests[1].contains(r#""model":"small""#));
        assert!(!requests[0].contains("authorization"));
    }

    #[tokio::test]
    async fn nothing_configured_means_offline() {
        let read = |variables: &[(&str, &str)]| LlmSettings::read(None, variables.iter().copied());
        let tiers = ChatTiers::or_offline(read(&[])).unwrap();
        assert_eq!(tiers.chat(call(None)).await.unwrap().model.as_deref(), Some("offline"));
        ChatTiers::or_offline(read(&[("OPENAI_API_KEY", "sk-1234")])).unwrap();
        ChatTiers::or_offline(read(&[("OPENAI_API_KEY", "two words")])).unwrap_err();
        let anthropic = ChatTiers::or_offline(read(&[("ANTHROPIC_API_KEY", "sk-ant-1234")])).unwrap();
        assert_eq!(
            anthropic.describe(ModelTier::High).provider.as_deref(),
            Some("anthropic")
        );
    }
}
