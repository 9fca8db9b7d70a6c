//! Asks servers that speak OpenAI's chat completions, which nearly all do.

mod advice;
mod builder;
mod calls;
mod classify;
mod details;
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
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, Url};
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier};
use rockbot_core::{CallContext, Clock, IdSource, SystemClock, until};
use tokio::time::{Instant, sleep_until, timeout};

pub use self::builder::OpenAiChatBuilder;
pub(crate) use self::builder::{base_url, is_key, is_loopback};
pub use self::probe::{ServerCheck, probe};
pub use self::report::SettingNames;

use self::advice::Advice;
use self::idle::IdleTimer;
use self::report::Reporter;
use self::response::{Assembler, Fault, Outlet};
use self::stream::StreamFold;
use crate::gateway::{RetryPolicy, retrying};

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
    http: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    limits: Limits,
    retry: RetryPolicy,
    ids: Arc<dyn IdSource>,
    report: Reporter,
    provider: Arc<str>,
}

/// How long and how large things may become.
#[derive(Debug, Clone, Copy)]
struct Limits {
    call: Duration,
    idle: Duration,
    body: usize,
    event: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            body: 32 << 20,
            event: 4 << 20,
        }
    }
}

/// As much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A limit beyond this is none; without a bound the clock would overflow.
const LONGEST_CALL: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long the rest of a finished stream is awaited, so that its connection can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl OpenAiChat {
    /// A client of `model` at `endpoint`, a base URL such as `https://api.openai.com/v1`.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder::new(endpoint.into(), model.into())
    }

    /// The model that this client asks.
    pub fn model(&self) -> &str {
        &self.report.model
    }

    async fn ask(&self, call: ChatCall, deadline: Instant) -> Result<ChatResponse, ChatError> {
        let body = request::body(self.model(), &call.request, call.deltas.is_some()).map_err(|error| {
            ChatError::new(ChatErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
        })?;
        let body = Bytes::from(body);
        let attempt = |call| self.attempt(call, body.clone());
        retrying(&self.retry, call, Some(deadline), attempt).await
    }

    async fn attempt(&self, call: ChatCall, body: Bytes) -> Result<ChatResponse, ChatError> {
        let response = self.send(body).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
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
        read.map_err(|fault| {
            let error = self.report.unusable(&fault);
            match fault {
                // An answer that was too long once will be so again.
                Fault::TooLong(..) => error.with_retry_advice(false),
                _ => error,
            }
        })
    }

    async fn send(&self, body: Bytes) -> Result<Response, ChatError> {
        let mut request = reqwest::Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(body.into());
        let sent = self.http.execute(request).await;
        sent.map_err(|error| self.report.unreachable(error))
    }

    async fn refusal(&self, mut response: Response) -> ChatError {
        let status = response.status().as_u16();
        let advice = Advice::read(response.headers(), SystemClock.now());
        let mut body = Vec::new();
        // What cannot be read of an error's body is not worth another error.
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES - body.len())]);
        }
        let mut error = self.report.refused(Some(status), &body);
        if let Some(after) = advice.after {
            error = error.with_retry_after(after.min(self.retry.longest_retry_after));
        }
        match advice.should_retry {
            Some(helps) => error.with_retry_advice(helps),
            None => error,
        }
    }

    async fn read_whole(&self, mut response: Response, answer: Assembler<'_>) -> Result<ChatResponse, Fault> {
        let body = self.collect(Bytes::new(), &mut response).await?;
        answer.whole(&body)
    }

    async fn read_stream(&self, mut response: Response, answer: Assembler<'_>) -> Result<ChatResponse, Fault> {
        let Some(first) = next(&mut response).await? else {
            return Err(Fault::Cut("before it began"));
        };
        let mut size = first.len();
        self.check_size(size)?;
        if first.trim_ascii_start().starts_with(b"{") {
            // The server does not stream; it sent the answer whole.
            let body = self.collect(first, &mut response).await?;
            return answer.whole(&body);
        }
        let mut fold = StreamFold::new(answer, self.limits.event);
        fold.push(&first)?;
        let mut idle = IdleTimer::new(self.limits.idle);
        while !fold.is_done() {
            let next = idle.watch(next(&mut response)).await;
            let Some(bytes) = next.map_err(|_| Fault::Cut("as nothing more came in time"))?? else {
                break;
            };
            size += bytes.len();
            self.check_size(size)?;
            fold.push(&bytes)?;
        }
        if fold.is_done() {
            let _ = timeout(DRAIN_TIME, next(&mut response)).await;
        }
        fold.finish()
    }

    /// Reads what follows `first`. A body that came in one piece, as most do, is not copied.
    async fn collect(&self, first: Bytes, response: &mut Response) -> Result<Bytes, Fault> {
        let announced = response.content_length().unwrap_or(0);
        self.check_size(usize::try_from(announced).unwrap_or(usize::MAX))?;
        let mut body = BytesMut::new();
        let mut last = first;
        while let Some(bytes) = next(response).await? {
            self.check_size(body.len() + last.len() + bytes.len())?;
            body.extend_from_slice(&last);
            last = bytes;
        }
        if body.is_empty() {
            return Ok(last);
        }
        body.extend_from_slice(&last);
        Ok(body.freeze())
    }

    fn check_size(&self, size: usize) -> Result<(), Fault> {
        match size > self.limits.body {
            true => Err(Fault::TooLong("the answer", self.limits.body)),
            false => Ok(()),
        }
    }

    /// When the call ends at the latest: at its deadline, or after this client's limit.
    fn deadline(&self, cx: &CallContext) -> Instant {
        let own = Instant::now() + self.limits.call.min(LONGEST_CALL);
        cx.deadline().map_or(own, |deadline| deadline.min(own))
    }

    fn timed_out(&self, cx: &CallContext) -> ChatError {
        let is_ours = cx.time_left().is_none_or(|left| !left.is_zero());
        self.report.timed_out(is_ours.then_some(self.limits.call))
    }
}

async fn next(response: &mut Response) -> Result<Option<Bytes>, Fault> {
    response
        .chunk()
        .await
        .map_err(|_| Fault::Cut("as the connection broke"))
}

fn has_type(response: &Response, expected: &[u8]) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(expected))
}

#[async_trait]
impl ChatClient for OpenAiChat {
    fn model_of(&self, _: ModelTier) -> Option<Arc<str>> {
        Some(self.report.model.clone())
    }

    fn provider_of(&self, _: ModelTier) -> Option<Arc<str>> {
        Some(self.provider.clone())
    }

    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let deadline = self.deadline(&call.cx);
        let cx = call.cx.clone();
        let stop = async {
            tokio::select! {
                biased;
                () = cx.cancellation().cancelled() => self.report.cancelled(),
                () = sleep_until(deadline) => self.timed_out(&cx),
            }
        };
        until(pin!(self.ask(call, deadline)), stop).await.unwrap_or_else(Err)
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.report.endpoint)
            .field("model", &self.report.model)
            .finish_non_exhaustive()
    }
}
