//! The chat client, and what it is built from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::{IdSource, RandomIds, TurnId};
use tokio::time::Instant;

use super::dialect::{CHAT_PATH, OPENAI};
use super::request;
use super::response::Assembler;
use crate::error::LlmConfigError;
use crate::http::{ClientBuilder, Connection, Outgoing, Outlet, provider_of};
use crate::retry::retrying;
use crate::settings::TierSettings;

/// Builds an [`OpenAiChat`].
pub type OpenAiChatBuilder = ClientBuilder<ChatOptions>;

/// The options that only a chat client has.
#[derive(Debug)]
pub struct ChatOptions {
    ids: Arc<dyn IdSource>,
}

/// A [`ChatClient`] over HTTP for OpenAI-compatible servers: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama.
///
/// It streams on the wire only if the call has a delta sink. A call that fails in a way that may pass is attempted
/// a second time, unless a [`Retry`](crate::Retry) layer around it retries; see [`OpenAiChatBuilder`] for the
/// limits. A call that is cancelled, dropped or out of time closes its connection.
///
/// ```no_run
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest};
/// use rockbot_llm::OpenAiChat;
///
/// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
/// let model = OpenAiChat::builder("http://localhost:11434/v1", "qwen3").build()?;
/// let request = ChatRequest::new([ChatMessage::user("Why is the sky blue?")]);
/// let answer = model
///     .chat(ChatCall::new(request, CallContext::new("session")))
///     .await?;
/// println!("{}", answer.text);
/// # Ok(())
/// # }
/// ```
pub struct OpenAiChat {
    connection: Connection,
    url: Url,
    ids: Arc<dyn IdSource>,
    provider: Arc<str>,
    /// Makes the marks around the host's texts unpredictable for tools, which may know the id of the turn.
    secret: String,
}

impl OpenAiChat {
    /// Creates the builder of a client of `model` at `endpoint`, a base URL such as `https://api.openai.com/v1`.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder::new(endpoint.into(), model.into())
    }

    /// Creates the client of the model that `settings` name.
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
        let settings = self.connection.settings_of(&call.request)?;
        let scope = call.cx.turn().map_or(call.cx.session().as_str(), TurnId::as_str);
        let scope = [&*self.secret, scope];
        let body = request::body(self.model(), &call.request, &settings, call.deltas.is_some(), scope)?;
        let outgoing = Outgoing::new(body, &settings.extra_headers);
        // Borrows the call, which moves now.
        drop(settings);
        let attempt = |call| self.attempt(call, outgoing.clone());
        retrying(&self.connection.retry, call, Some(deadline), attempt).await
    }

    async fn attempt(&self, call: ChatCall, outgoing: Outgoing) -> Result<ChatResponse, ChatError> {
        let outlet = Outlet(call.deltas);
        let is_streamed = outlet.0.is_some();
        let answer = Assembler::new(&call.request.messages, &*self.ids, &outlet);
        let read = self.connection.exchange(&self.url, outgoing, is_streamed, answer).await;
        read.map(|answer| ChatResponse {
            provider: Some(self.provider.clone()),
            ..answer
        })
    }
}

#[async_trait]
impl ChatClient for OpenAiChat {
    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new(self.connection.report.model.clone()).with_provider(self.provider.clone())
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let (cx, deadline) = (call.cx.clone(), self.connection.deadline(&call.cx));
        self.connection.until(&cx, deadline, self.ask(call, deadline)).await
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.connection.report.endpoint)
            .field("model", &self.connection.report.model)
            .finish_non_exhaustive()
    }
}

impl OpenAiChatBuilder {
    fn new(endpoint: String, model: String) -> Self {
        let ids = Arc::new(RandomIds);
        Self::with(endpoint, model, ChatOptions { ids })
    }

    /// Sets the limit on pauses between two pieces of a streamed answer. Default 2 minutes. The first piece may
    /// take as long as the call, because reasoning models pause first.
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
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, a model setting has a value that no model
    /// takes, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiChat, LlmConfigError> {
        let connection = self.connection.connect(&OPENAI)?;
        Ok(OpenAiChat {
            ids: self.options.ids,
            secret: RandomIds.next_id(),
            provider: provider_of(&connection.base).unwrap_or("openai").into(),
            url: connection.url(CHAT_PATH),
            connection,
        })
    }
}
