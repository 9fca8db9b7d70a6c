//! The chat client and its options.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rockbot_core::IdSource;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatMessage, ChatResponse, ModelInfo, ModelTier};

use super::dialect::{RESPONSES, RESPONSES_PATH, may_reason};
use super::request;
use super::response::Assembler;
use crate::error::LlmConfigError;
use crate::http::{ChatOptions, ChatWire, ClientBuilder, Connection, Dialect, HttpChat, Outlet, Question};
use crate::settings::TierSettings;

/// Builds an [`OpenAiResponses`].
pub type OpenAiResponsesBuilder = ClientBuilder<ChatOptions<ResponsesOptions>>;

/// The options that only a chat client of this dialect has.
#[derive(Debug)]
pub struct ResponsesOptions {
    /// `true` if the server is asked for encrypted reasoning, `None` if that depends on the model.
    keeps_reasoning: Option<bool>,
}

/// A [`ChatClient`] over HTTP for OpenAI's Responses API, and for servers that speak it.
///
/// It streams on the wire only if the call has a delta sink. The server stores nothing (`store:
/// false`): each request carries the whole conversation. A model that reasons gives its reasoning
/// encrypted, which is kept in the [`Reasoning`](rockbot_core::chat::Reasoning) of an answer and
/// sent back unchanged, so that the model goes on where it was behind a tool call. The API knows
/// neither stop sequences nor a seed, so these
/// [`ModelSettings`](rockbot_core::chat::ModelSettings) are not sent.
///
/// A call that fails in a way that may pass is attempted a second time, unless a
/// [`Retry`](crate::Retry) layer around it retries; see [`OpenAiResponsesBuilder`] for the
/// limits. A call that is cancelled, dropped or out of time closes its connection.
///
/// ```no_run
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest, ModelSettings, ReasoningEffort};
/// use rockbot_llm::OpenAiResponses;
///
/// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
/// let model = OpenAiResponses::builder("https://api.openai.com/v1", "gpt-5")
///     .api_key(std::env::var("OPENAI_API_KEY")?.into())
///     .model_settings(ModelSettings::new().with_reasoning_effort(ReasoningEffort::Low))
///     .build()?;
/// let request = ChatRequest::new([ChatMessage::user("Why is the sky blue?")]);
/// let answer = model.chat(ChatCall::new(request, CallContext::new("session"))).await?;
/// println!("{}", answer.text);
/// # Ok(())
/// # }
/// ```
pub struct OpenAiResponses(HttpChat<ResponsesWire>);

impl OpenAiResponses {
    /// Creates the builder of a client of `model` at `endpoint`, a base URL such as `https://api.openai.com/v1`.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> OpenAiResponsesBuilder {
        OpenAiResponsesBuilder::new(endpoint.into(), model.into())
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
impl ChatClient for OpenAiResponses {
    fn describe(&self, _: ModelTier) -> ModelInfo {
        self.0.describe()
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.0.chat(call).await
    }
}

impl fmt::Debug for OpenAiResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as("OpenAiResponses", f)
    }
}

/// The requests and answers of this dialect.
struct ResponsesWire {
    keeps_reasoning: bool,
}

impl ChatWire for ResponsesWire {
    const DIALECT: &'static Dialect = &RESPONSES;
    const PATH: &'static str = RESPONSES_PATH;
    type Asked = ();
    type Reader<'a> = Assembler<'a>;

    fn request(&self, question: Question<'_>) -> Result<(Bytes, ()), ChatError> {
        Ok((request::body(question, self.keeps_reasoning)?.into(), ()))
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

impl OpenAiResponsesBuilder {
    fn new(endpoint: String, model: String) -> Self {
        let options = ResponsesOptions { keeps_reasoning: None };
        Self::chat(endpoint, model, options)
    }

    /// Sets whether the server is asked for encrypted reasoning, which goes back to it with the
    /// conversation. By default it is, except for OpenAI's models that do not reason (`gpt-4.1` and
    /// before, and chat models), because the API refuses such requests.
    pub fn keep_reasoning(mut self, keeps_reasoning: bool) -> Self {
        self.options.wire.keeps_reasoning = Some(keeps_reasoning);
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, a model setting has a value that no model
    /// takes, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiResponses, LlmConfigError> {
        let chosen = self.options.wire.keeps_reasoning;
        let keeps_reasoning = chosen.unwrap_or_else(|| may_reason(&self.connection.model));
        let wire = ResponsesWire { keeps_reasoning };
        HttpChat::connect(self, wire).map(OpenAiResponses)
    }
}
