//! Asks servers that speak OpenAI's chat completions, which nearly all do, and its embeddings.

mod advice;
mod builder;
mod calls;
mod classify;
mod connection;
mod details;
mod embeddings;
mod endpoint;
mod idle;
mod overflow;
mod probe;
mod report;
mod request;
mod response;
mod sse;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod think;
mod usage;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Response, Url};
use rockbot_core::IdSource;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier};
use tokio::time::{Instant, timeout};

pub(crate) use self::builder::{OpenAiBuilder, is_key};
pub use self::builder::{OpenAiChatBuilder, OpenAiEmbeddingsBuilder};
pub use self::embeddings::OpenAiEmbeddings;
pub(crate) use self::endpoint::{base_url, is_loopback};
pub use self::probe::{ServerCheck, probe};
pub use self::report::SettingNames;

use self::connection::{Connection, has_type, next};
use self::idle::IdleTimer;
use self::response::{Assembler, Fault, Outlet};
use self::stream::StreamFold;
use crate::gateway::retrying;

/// A [`ChatClient`] over HTTP for OpenAI-compatible servers: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama.
///
/// It streams on the wire only when the call has a delta sink. A call that failed in a way that may pass is
/// tried once more, unless a [`Retry`](crate::Retry) around it tries again itself; see [`OpenAiChatBuilder`] for the limits. A call that is cancelled, dropped or out of time
/// closes its connection.
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
///     .chat(ChatCall { request: request.into(), deltas: None, cx: CallContext::new("session") })
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
}

/// How long the rest of a finished stream is awaited, so that its connection can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl OpenAiChat {
    /// A client of `model` at `endpoint`, a base URL such as `https://api.openai.com/v1`.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder::new(endpoint.into(), model.into())
    }

    /// The model that this client asks.
    pub fn model(&self) -> &str {
        &self.connection.report.model
    }

    async fn ask(&self, call: ChatCall, deadline: Instant) -> Result<ChatResponse, ChatError> {
        let body = request::body(self.model(), &call.request, call.deltas.is_some()).map_err(|error| {
            ChatError::new(ChatErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
        })?;
        let body = Bytes::from(body);
        let attempt = |call| self.attempt(call, body.clone());
        retrying(&self.connection.retry, call, Some(deadline), attempt).await
    }

    async fn attempt(&self, call: ChatCall, body: Bytes) -> Result<ChatResponse, ChatError> {
        let response = self.connection.post(&self.url, body).await?;
        let outlet = Outlet(call.deltas.clone());
        let answer = Assembler::new(&call.request.messages, &*self.ids, &outlet);
        let read = match call.deltas {
            _ if has_type(&response, b"text/html") => Err(Fault::WebPage),
            Some(_) if !has_type(&response, b"application/json") => self.read_stream(response, answer).await,
            _ => self.read_whole(response, answer).await,
        };
        let read = read.map(|answer| ChatResponse {
            provider: Some(self.provider.clone()),
            ..answer
        });
        read.map_err(|fault| self.connection.unusable(&fault))
    }

    async fn read_whole(&self, mut response: Response, answer: Assembler<'_>) -> Result<ChatResponse, Fault> {
        let body = self.connection.collect(Bytes::new(), &mut response).await?;
        answer.whole(&body)
    }

    async fn read_stream(&self, mut response: Response, answer: Assembler<'_>) -> Result<ChatResponse, Fault> {
        let Some(first) = next(&mut response).await? else {
            return Err(Fault::Cut("before it began"));
        };
        let mut size = first.len();
        self.connection.check_size(size)?;
        if first.trim_ascii_start().starts_with(b"{") {
            // The server does not stream; it sent the answer whole.
            let body = self.connection.collect(first, &mut response).await?;
            return answer.whole(&body);
        }
        let mut fold = StreamFold::new(answer, self.connection.limits.event);
        fold.push(&first)?;
        let mut idle = IdleTimer::new(self.connection.limits.idle);
        while !fold.is_done() {
            let next = idle.watch(next(&mut response)).await;
            let Some(bytes) = next.map_err(|_| Fault::Cut("as nothing more came in time"))?? else {
                break;
            };
            size += bytes.len();
            self.connection.check_size(size)?;
            fold.push(&bytes)?;
        }
        if fold.is_done() {
            let _ = timeout(DRAIN_TIME, next(&mut response)).await;
        }
        fold.finish()
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
