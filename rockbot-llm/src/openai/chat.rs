//! The chat client and its options.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rockbot_core::IdSource;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatMessage, ChatResponse, ModelInfo, ModelTier};

use super::dialect::{CHAT_PATH, OPENAI};
use super::request;
use super::response::Assembler;
use crate::error::LlmConfigError;
use crate::http::{ChatOptions, ChatWire, ClientBuilder, Connection, Dialect, HttpChat, Outlet, Question};
use crate::settings::TierSettings;

/// Builds an [`OpenAiChat`].
pub type OpenAiChatBuilder = ClientBuilder<ChatOptions<()>>;

/// A [`ChatClient`] over HTTP for OpenAI-compatible servers: OpenAI, OpenRouter, vLLM, llama.cpp,
/// Ollama.
///
/// It streams on the wire only if the call has a delta sink. A call that fails in a way that may
/// pass is attempted a second time, unless a [`Retry`](crate::Retry) layer around it retries; see
/// [`OpenAiChatBuilder`] for the limits. A call that is cancelled, dropped or out of time closes
/// its connection.
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
pub struct OpenAiChat(HttpChat<OpenAiWire>);

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
        self.0.model()
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.0.connection
    }
}

#[async_trait]
impl ChatClient for OpenAiChat {
    fn describe(&self, _: ModelTier) -> ModelInfo {
        self.0.describe()
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.0.chat(call).await
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as("OpenAiChat", f)
    }
}

/// The requests and answers of this dialect.
struct OpenAiWire;

impl ChatWire for OpenAiWire {
    const DIALECT: &'static Dialect = &OPENAI;
    const PATH: &'static str = CHAT_PATH;
    type Asked = ();
    type Reader<'a> = Assembler<'a>;

    fn request(&self, question: Question<'_>) -> Result<(Bytes, ()), ChatError> {
        Ok((request::body(question)?, ()))
    }

    fn reader<'a>(
        (): &'a (),
        messages: &'a [Arc<ChatMessage>],
        ids: &'a dyn IdSource,
        outlet: &'a Outlet,
    ) -> Assembler<'a> {
        Assembler::new(messages, ids, outlet)
    }
}

impl OpenAiChatBuilder {
    fn new(endpoint: String, model: String) -> Self {
        Self::chat(endpoint, model, ())
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, a model setting has a value that no model
    /// takes, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiChat, LlmConfigError> {
        HttpChat::connect(self, OpenAiWire).map(OpenAiChat)
    }
}
