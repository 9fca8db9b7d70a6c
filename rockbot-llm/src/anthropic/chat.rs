//! The chat client, and what it is built from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::{IdSource, RandomIds};
use tokio::time::Instant;

use super::dialect::{ANTHROPIC, DEFAULT_VERSION, FIRST_WITHOUT_TEMPERATURE, MESSAGES_PATH, VERSION_HEADER};
use super::request::{self, RequestOptions};
use super::response::Assembler;
use super::shape::ShapeTool;
use crate::error::LlmConfigError;
use crate::http::{ClientBuilder, Connection, ExtraHeader, Outgoing, Outlet, provider_of};
use crate::retry::retrying;
use crate::settings::TierSettings;

/// Builds an [`AnthropicChat`].
pub type AnthropicChatBuilder = ClientBuilder<AnthropicOptions>;

/// The options that only a chat client of this dialect has.
#[derive(Debug)]
pub struct AnthropicOptions {
    ids: Arc<dyn IdSource>,
    version: String,
    request: RequestOptions,
}

/// A [`ChatClient`] over HTTP for Anthropic's Messages API, and for servers that speak it.
///
/// It streams on the wire only if the call has a delta sink. Thinking blocks are kept with their signatures in the
/// [`Reasoning`](rockbot_core::chat::Reasoning) of an answer, and sent back unchanged. An
/// [`OutputSchema`](rockbot_core::chat::OutputSchema) becomes a tool that the model must call; its arguments are the text
/// of the answer. The server is asked to cache the tools, the system text, and the conversation up to its last message.
///
/// A call that fails in a way that may pass is attempted a second time, unless a [`Retry`](crate::Retry) layer around it
/// retries; see [`AnthropicChatBuilder`] for the limits. A call that is cancelled, dropped or out of time closes its
/// connection.
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
pub struct AnthropicChat {
    connection: Connection,
    url: Url,
    ids: Arc<dyn IdSource>,
    provider: Arc<str>,
    options: RequestOptions,
}

impl AnthropicChat {
    /// The maximum number of tokens of an answer, if neither the request nor the builder sets one: the API requires a limit.
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
        &self.connection.report.model
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    async fn ask(&self, call: ChatCall, deadline: Instant) -> Result<ChatResponse, ChatError> {
        let (request, is_streamed) = (&call.request, call.deltas.is_some());
        let settings = self.connection.settings_of(request)?;
        let shape = ShapeTool::of(request, &settings);
        let body = request::body(
            self.model(),
            request,
            &settings,
            shape.as_ref(),
            &self.options,
            is_streamed,
        )?;
        let outgoing = Outgoing::new(body, &settings.extra_headers);
        // Borrows the call, which moves now.
        drop(settings);
        let attempt = |call| self.attempt(call, shape.as_ref(), outgoing.clone());
        retrying(&self.connection.retry, call, Some(deadline), attempt).await
    }

    async fn attempt(
        &self,
        call: ChatCall,
        shape: Option<&ShapeTool>,
        outgoing: Outgoing,
    ) -> Result<ChatResponse, ChatError> {
        let outlet = Outlet(call.deltas);
        let is_streamed = outlet.0.is_some();
        let answer = Assembler::new(&call.request.messages, shape, &*self.ids, &outlet);
        let read = self.connection.exchange(&self.url, outgoing, is_streamed, answer).await;
        read.map(|answer| ChatResponse {
            provider: Some(self.provider.clone()),
            ..answer
        })
    }
}

#[async_trait]
impl ChatClient for AnthropicChat {
    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new(self.connection.report.model.clone()).with_provider(self.provider.clone())
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let (cx, deadline) = (call.cx.clone(), self.connection.deadline(&call.cx));
        self.connection.until(&cx, deadline, self.ask(call, deadline)).await
    }
}

impl fmt::Debug for AnthropicChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicChat")
            .field("endpoint", &self.connection.report.endpoint)
            .field("model", &self.connection.report.model)
            .finish_non_exhaustive()
    }
}

impl AnthropicChatBuilder {
    fn new(endpoint: String, model: String) -> Self {
        let options = AnthropicOptions {
            ids: Arc::new(RandomIds),
            version: DEFAULT_VERSION.to_owned(),
            request: RequestOptions {
                max_tokens: AnthropicChat::DEFAULT_MAX_TOKENS,
                thinking_budget: None,
                is_cached: true,
                has_temperature: true,
            },
        };
        Self::with(endpoint, model, options)
    }

    /// Sets the maximum number of tokens of an answer, for requests that set none. Default
    /// [`DEFAULT_MAX_TOKENS`](AnthropicChat::DEFAULT_MAX_TOKENS); 0 counts as 1.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.options.request.max_tokens = tokens;
        self
    }

    /// Lets the model think for up to `tokens`, at least 1024, beside those of the answer. Off by default.
    ///
    /// Requests that force a tool call are sent without it, and so are those in a tool loop that began without it, because
    /// the API refuses both. A request that thinks has neither a temperature nor a `top_p`. Its
    /// [`ReasoningEffort`](rockbot_core::chat::ReasoningEffort) replaces this number: 1024 for minimal, 4096 for low, 8192,
    /// 16384 and 32768 for more.
    pub fn thinking_budget(mut self, tokens: u32) -> Self {
        self.options.request.thinking_budget = Some(tokens.max(1024));
        self
    }

    /// Sets whether the server is asked to cache what the next request begins with. Default `true`.
    pub fn prompt_caching(mut self, is_cached: bool) -> Self {
        self.options.request.is_cached = is_cached;
        self
    }

    /// Sets the version of the API, a date that is sent as `anthropic-version`. Default `2023-06-01`. Versions from
    /// `2026-10-21` on accept no temperature, so none is sent.
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.options.version = version.into();
        self
    }

    /// Sets the limit on pauses between two pieces of a streamed answer. Default 2 minutes. The first piece may take as long
    /// as the call.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.connection.limits.idle = limit;
        self
    }

    /// Sets the source of ids for tool calls that the server sends without one. Random by default.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.options.ids = ids;
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(mut self) -> Result<AnthropicChat, LlmConfigError> {
        let AnthropicOptions {
            ids,
            version,
            mut request,
        } = self.options;
        request.has_temperature = version.as_str() < FIRST_WITHOUT_TEMPERATURE;
        // In front of the user's own headers, of which the last of a name counts.
        self.connection
            .headers
            .insert(0, ExtraHeader::shown(VERSION_HEADER, version));
        let connection = self.connection.connect(&ANTHROPIC)?;
        Ok(AnthropicChat {
            ids,
            provider: provider_of(&connection.base).unwrap_or("anthropic").into(),
            url: connection.url(MESSAGES_PATH),
            connection,
            options: request,
        })
    }
}
