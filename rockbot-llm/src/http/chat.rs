//! [`HttpChat`]: the chat client of every dialect, which adds only how a request is written and an answer is read.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::Url;
use rockbot_core::IdSource;
use rockbot_core::chat::{
    ChatCall, ChatError, ChatMessage, ChatRequest, ChatResponse, ModelInfo, ModelSettings, RequestCache,
};
use tokio::time::Instant;

use super::notes::{MarkScope, MarkSecret};
use super::refused_part::{RefusedParts, known_output_mode};
use super::strict_tools::drop_added_nulls;
use super::{AnswerReader, ChatOptions, ClientBuilder, Connection, Dialect, Outgoing, Outlet, provider_of};
use crate::error::LlmConfigError;
use crate::retry::retrying;

/// A question to a model; a dialect writes its body.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) model: &'a str,
    pub(crate) request: &'a Arc<ChatRequest>,
    pub(crate) settings: &'a ModelSettings,
    /// The origin of the marks around the host's texts.
    pub(crate) scope: MarkScope<'a>,
    /// `true` if the call has a sink.
    pub(crate) is_streamed: bool,
    /// The cache of the turn's requests, if the question belongs to a turn.
    pub(crate) cache: Option<&'a RequestCache>,
}

/// The requests and answers of a dialect.
pub(crate) trait ChatWire: Send + Sync {
    /// The dialect, as the transport sees it.
    const DIALECT: &'static Dialect;

    /// Path of chats below the base URL.
    const PATH: &'static str;

    /// The facts about a request that its answer is read with.
    type Asked: Send + Sync;

    /// The reader of one answer.
    type Reader<'a>: AnswerReader + Send;

    /// Writes the body of a question.
    fn request(&self, question: Question<'_>) -> Result<(Bytes, Self::Asked), ChatError>;

    /// Creates the reader of an answer to `messages`. A call without a usable id gets an id from
    /// `ids`.
    fn reader<'a>(
        asked: &'a Self::Asked,
        messages: &'a [Arc<ChatMessage>],
        ids: &'a dyn IdSource,
        outlet: &'a Outlet,
    ) -> Self::Reader<'a>;
}

/// A chat client of one model at one server, in the dialect `W`.
pub(crate) struct HttpChat<W> {
    pub(crate) connection: Connection,
    url: Url,
    ids: Arc<dyn IdSource>,
    provider: Arc<str>,
    /// Parts of requests that the server has refused.
    refused: RefusedParts,
    /// Makes the marks around the host's texts unpredictable for tools.
    secret: MarkSecret,
    wire: W,
}

impl<W: ChatWire> HttpChat<W> {
    /// Connects the client that `builder` describes. Opens no connection yet.
    pub(crate) fn connect<O>(builder: ClientBuilder<ChatOptions<O>>, wire: W) -> Result<Self, LlmConfigError> {
        let connection = builder.connection.connect(W::DIALECT)?;
        Ok(Self {
            url: connection.url(W::PATH),
            ids: builder.options.ids,
            provider: provider_of(&connection.base).unwrap_or(W::DIALECT.provider).into(),
            connection,
            refused: RefusedParts::default(),
            secret: MarkSecret::random(),
            wire,
        })
    }

    /// Returns the id of the model that this client asks.
    pub(crate) fn model(&self) -> &str {
        &self.connection.report.model
    }

    /// Describes the model.
    pub(crate) fn describe(&self) -> ModelInfo {
        let info = self.connection.model_info().with_provider(self.provider.clone());
        let known = known_output_mode(&self.provider, self.model());
        let takes_images = self.refused.takes_images().or(info.takes_images);
        info.with_images(takes_images)
            .with_output_mode(self.refused.output_mode().unwrap_or(known))
    }

    /// Asks the model within the limits of the connection and of the call.
    pub(crate) async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let deadline = self.connection.deadline(&call.cx);
        // A call is raced with its end once: by the caller, unless this client's own limit comes first.
        let is_watched = call.is_supervised && call.cx.deadline() == Some(deadline);
        let cx = (!is_watched).then(|| call.cx.clone());
        // In place: moving a future copies all of it.
        let answer = pin!(self.ask(call, deadline));
        match cx {
            Some(cx) => self.connection.until(&cx, deadline, answer).await,
            None => answer.await,
        }
    }

    /// Writes the client for debugging, under the name of its public type.
    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("endpoint", &self.connection.report.endpoint)
            .field("model", &self.connection.report.model)
            .finish_non_exhaustive()
    }

    /// Asks the model, and once more in words if the server does not take an image or a schema of the
    /// request.
    async fn ask(&self, call: ChatCall, deadline: Instant) -> Result<ChatResponse, ChatError> {
        if !RefusedParts::may_refuse(&call.request) {
            return self.ask_once(call, deadline).await;
        }
        let mut call = call;
        // Each refusal leaves out one of three parts.
        loop {
            self.refused.leave_out(&mut call.request);
            match Box::pin(self.ask_once(call.clone(), deadline)).await {
                Err(error) if self.refused.learn(&error, &mut call.request) => {}
                answered => return answered,
            }
        }
    }

    async fn ask_once(&self, call: ChatCall, deadline: Instant) -> Result<ChatResponse, ChatError> {
        if let Some(own) = &call.request.settings {
            self.connection.report.hide(own.extra_headers.values());
        }
        let settings = self.connection.settings_of(&call.request)?;
        let question = Question {
            model: self.model(),
            request: &call.request,
            settings: &settings,
            scope: self.secret.scope(&call),
            is_streamed: call.deltas.is_some(),
            cache: call.cache.as_ref(),
        };
        let (body, asked) = self.wire.request(question)?;
        let outgoing = Outgoing::new(body, &settings.extra_headers);
        let strict = (settings.strict_tools == Some(true)).then(|| call.request.tools.clone());
        // Borrows the call, which moves now.
        drop(settings);
        let attempt = |call| self.attempt(call, &asked, outgoing.clone());
        let mut answered = retrying(&self.connection.retry, call, Some(deadline), attempt).await;
        if let (Some(tools), Ok(answer)) = (strict, &mut answered) {
            drop_added_nulls(&tools, &mut answer.tool_calls);
        }
        answered
    }

    // No `async fn`: its future would have room for the sent request, and be moved with it.
    fn attempt(
        &self,
        call: ChatCall,
        asked: &W::Asked,
        outgoing: Outgoing,
    ) -> impl Future<Output = Result<ChatResponse, ChatError>> {
        let posted = self.connection.post(&self.url, outgoing);
        async move {
            let outlet = Outlet(call.deltas);
            let is_streamed = outlet.0.is_some();
            let reader = || W::reader(asked, &call.request.messages, &*self.ids, &outlet);
            let read = self.connection.answer_to(posted, is_streamed, reader).await;
            read.map(|answer| answer.with_provider(self.provider.clone()))
        }
    }
}
