//! The builder that all clients of model servers share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::ModelSettings;
use rockbot_core::{IdSource, RandomIds, Secret};

use super::{ConnectionOptions, ExtraHeader, SettingNames};

/// A builder of a client of a model server. The order of the calls does not matter.
///
/// `O` holds the options that only one kind of client has: see
/// [`OpenAiChatBuilder`](crate::OpenAiChatBuilder),
/// [`OpenAiResponsesBuilder`](crate::OpenAiResponsesBuilder),
/// [`AnthropicChatBuilder`](crate::AnthropicChatBuilder) and
/// [`OpenAiEmbeddingsBuilder`](crate::OpenAiEmbeddingsBuilder).
#[must_use]
pub struct ClientBuilder<O> {
    pub(crate) connection: ConnectionOptions,
    pub(crate) options: O,
}

impl<O> fmt::Debug for ClientBuilder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("model", &self.connection.model)
            .finish_non_exhaustive()
    }
}

impl<O> ClientBuilder<O> {
    pub(crate) fn with(endpoint: String, model: String, options: O) -> Self {
        let connection = ConnectionOptions::new(endpoint, model);
        Self { connection, options }
    }

    /// Sets the key, sent as `Authorization: Bearer …`, or as `x-api-key` to Anthropic. Without one
    /// no such header is sent.
    pub fn api_key(mut self, key: Secret) -> Self {
        self.connection.api_key = Some(key);
        self
    }

    /// Adds a header that is sent with each request, such as OpenRouter's `X-Title`.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secret_header(name, value.into().into())
    }

    /// Adds a header that is sent with each request, such as Azure's `api-key`. No error message or
    /// log shows its value.
    pub fn secret_header(mut self, name: impl Into<String>, value: Secret) -> Self {
        let header = ExtraHeader::new(name, value);
        self.connection.headers.push(header);
        self
    }

    /// Sets the time limit of a whole call, its retries included. Default 10 minutes for a chat, 1
    /// minute for embeddings.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.connection.limits.call = limit;
        self
    }

    /// Sets the time limit for connecting. Default 5 seconds.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connection.connect_timeout = limit;
        self
    }

    /// Sets how many attempts a call gets, the first included. Default 2; 0 counts as 1.
    ///
    /// A further attempt is made only if it may help. Inside of a [`Retry`](crate::Retry) layer the
    /// client attempts each call once, whatever is set here: attempts must not multiply.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.connection.retry.max_attempts = attempts;
        self
    }

    /// Sets the longest wait before a further attempt, whatever the server asks for. Default 30
    /// seconds.
    pub fn max_retry_after(mut self, limit: Duration) -> Self {
        self.connection.retry.max_retry_after = limit;
        self.connection.retry.max_delay = self.connection.retry.max_delay.min(limit);
        self
    }

    /// Sets the settings of the model for requests that do not set them, such as the temperature. No
    /// error message shows the values of their extra headers. They have no effect on embeddings.
    ///
    /// ```
    /// use rockbot_core::chat::{ModelSettings, ReasoningEffort};
    /// use rockbot_llm::OpenAiChat;
    ///
    /// let settings = ModelSettings::new().with_reasoning_effort(ReasoningEffort::Low).with_max_output_tokens(4096);
    /// let model = OpenAiChat::builder("http://localhost:11434/v1", "qwen3").model_settings(settings).build()?;
    /// assert_eq!(model.model(), "qwen3");
    /// # Ok::<_, rockbot_llm::LlmConfigError>(())
    /// ```
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.connection.model_settings = settings.shared();
        self
    }

    /// Sets the names of this client's settings, so that error messages can name the setting to change.
    pub fn setting_names(mut self, names: SettingNames) -> Self {
        self.connection.names = names;
        self
    }
}

/// The options of a chat client; `O` holds the options that only its dialect has.
#[derive(Debug)]
pub struct ChatOptions<O> {
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) wire: O,
}

impl<O> ClientBuilder<ChatOptions<O>> {
    pub(crate) fn chat(endpoint: String, model: String, wire: O) -> Self {
        let ids = Arc::new(RandomIds);
        Self::with(endpoint, model, ChatOptions { ids, wire })
    }

    /// Sets the limit on pauses between two pieces of a streamed answer. Default 2 minutes. The first
    /// piece may take as long as the call, because reasoning models pause first.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.connection.limits.idle = limit;
        self
    }

    /// Sets the source of ids for tool calls that the server sends without one. Random by default.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.options.ids = ids;
        self
    }
}
