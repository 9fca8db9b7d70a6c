//! The chat client and its options.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rockbot_core::IdSource;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatMessage, ChatResponse, ModelInfo, ModelTier};

use super::dialect::{ANTHROPIC, DEFAULT_VERSION, FIRST_WITHOUT_TEMPERATURE, MESSAGES_PATH, VERSION_HEADER};
use super::request::{self, RequestOptions};
use super::response::Assembler;
use super::shape::ShapeTool;
use crate::error::LlmConfigError;
use crate::http::{ChatOptions, ChatWire, ClientBuilder, Connection, Dialect, ExtraHeader, HttpChat, Outlet, Question};
use crate::settings::TierSettings;

/// Builds an [`AnthropicChat`].
pub type AnthropicChatBuilder = ClientBuilder<ChatOptions<AnthropicOptions>>;

/// The options that only a chat client of this dialect has.
#[derive(Debug, Clone)]
pub struct AnthropicOptions {
    version: String,
    request: RequestOptions,
}

/// A [`ChatClient`] over HTTP for Anthropic's Messages API, and for servers that speak it.
///
/// It streams on the wire only if the call has a delta sink. Thinking blocks are kept with their
/// signatures in the [`Reasoning`](rockbot_core::chat::Reasoning) of an answer, and sent back
/// unchanged. An [`OutputSchema`](rockbot_core::chat::OutputSchema) becomes a tool that the model
/// must call; its arguments are the text of the answer. The server is asked to cache the tools,
/// the system text, and the conversation up to its last message.
///
/// A request with both a temperature and a `top_p` is sent with the temperature alone, since
/// newer models refuse both.
///
/// A call that fails in a way that may pass is attempted a second time, unless a
/// [`Retry`](crate::Retry) layer around it retries; see [`AnthropicChatBuilder`] for the limits.
/// A call that is cancelled, dropped or out of time closes its connection.
///
/// ```no_run
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest};
/// use rockbot_llm::AnthropicChat;
///
/// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("ANTHROPIC_API_KEY")?;
/// let model = AnthropicChat::builder("https://api.anthropic.com", "claude-sonnet-4-6")
///     .api_key(key.into())
///     .build()?;
/// let request = ChatRequest::new([ChatMessage::user("Why is the sky blue?")]);
/// let answer = model
///     .chat(ChatCall::new(request, CallContext::new("session")))
///     .await?;
/// println!("{}", answer.text);
/// # Ok(())
/// # }
/// ```
pub struct AnthropicChat(HttpChat<AnthropicWire>);

impl AnthropicChat {
    /// The maximum number of tokens of an answer, if neither the request nor the builder sets one:
    /// the API requires a limit.
    pub const DEFAULT_MAX_TOKENS: u32 = 8192;

    /// Creates the builder of a client of `model` at `endpoint`, a base URL such as `https://api.anthropic.com`, with or
    /// without a `/v1` at its end.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> AnthropicChatBuilder {
        AnthropicChatBuilder::new(endpoint.into(), model.into())
    }

    /// Creates the client of the model that `settings` name, whatever their provider.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting cannot be used.
    pub fn from_settings(settings: &TierSettings) -> Result<Self, LlmConfigError> {
        settings
            .apply(Self::builder(&settings.endpoint, &settings.model))
            .build()
    }

    /// Returns the id of the model that this client asks.
    pub fn model(&self) -> &str {
        self.0.model()
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.0.connection
    }
}

#[async_trait]
impl ChatClient for AnthropicChat {
    fn describe(&self, _: ModelTier) -> ModelInfo {
        self.0.describe()
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.0.chat(call).await
    }
}

impl fmt::Debug for AnthropicChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as("AnthropicChat", f)
    }
}

/// The requests and answers of this dialect.
struct AnthropicWire {
    options: RequestOptions,
}

impl ChatWire for AnthropicWire {
    const DIALECT: &'static Dialect = &ANTHROPIC;
    const PATH: &'static str = MESSAGES_PATH;
    type Asked = Option<ShapeTool>;
    type Reader<'a> = Assembler<'a>;

    fn request(&self, question: Question<'_>) -> Result<(Bytes, Self::Asked), ChatError> {
        let shape = ShapeTool::of(question.request, question.settings);
        let body = request::body(question, shape.as_ref(), &self.options)?;
        Ok((body.into(), shape))
    }

    fn reader<'a>(
        shape: &'a Self::Asked,
        messages: &'a [Arc<ChatMessage>],
        ids: &'a dyn IdSource,
        outlet: &'a Outlet,
    ) -> Assembler<'a> {
        Assembler::new(messages, shape.as_ref(), ids, outlet)
    }
}

impl AnthropicChatBuilder {
    fn new(endpoint: String, model: String) -> Self {
        let options = AnthropicOptions {
            version: DEFAULT_VERSION.to_owned(),
            request: RequestOptions {
                max_tokens: AnthropicChat::DEFAULT_MAX_TOKENS,
                thinking_budget: None,
                is_cached: true,
                has_temperature: true,
            },
        };
        Self::chat(endpoint, model, options)
    }

    /// Sets the maximum number of tokens of an answer, for requests that set none. Default
    /// [`DEFAULT_MAX_TOKENS`](AnthropicChat::DEFAULT_MAX_TOKENS); 0 counts as 1.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.options.wire.request.max_tokens = tokens;
        self
    }

    /// Lets the model think for up to `tokens`, at least 1024, in addition to the tokens of the
    /// answer. Off by default.
    ///
    /// Requests that force a tool call are sent without a budget, and so are requests in a tool loop
    /// that began without it, because the API refuses both. A request that thinks has neither a
    /// temperature nor a `top_p`. Its [`ReasoningEffort`](rockbot_core::chat::ReasoningEffort)
    /// replaces this number: 1024 for minimal, 4096 for low, 8192, 16384 and 32768 for more.
    pub fn thinking_budget(mut self, tokens: u32) -> Self {
        self.options.wire.request.thinking_budget = Some(tokens.max(1024));
        self
    }

    /// Sets whether the server is asked to cache the beginning of a request, which later requests
    /// repeat. Default `true`.
    pub fn prompt_caching(mut self, is_cached: bool) -> Self {
        self.options.wire.request.is_cached = is_cached;
        self
    }

    /// Sets the version of the API, a date that is sent as `anthropic-version`. Default `2023-06-01`.
    /// Versions from `2026-10-21` on accept no temperature, so none is sent.
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.options.wire.version = version.into();
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(mut self) -> Result<AnthropicChat, LlmConfigError> {
        let AnthropicOptions { version, mut request } = self.options.wire.clone();
        request.has_temperature = version.as_str() < FIRST_WITHOUT_TEMPERATURE;
        // Goes before the user's own headers: of two headers with one name, the last one counts.
        let header = ExtraHeader {
            is_secret: false,
            ..ExtraHeader::new(VERSION_HEADER, version.into())
        };
        self.connection.headers.insert(0, header);
        let wire = AnthropicWire { options: request };
        HttpChat::connect(self, wire).map(AnthropicChat)
    }
}
