//! Tools that run in another program, over a bus.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::mpsc;

use super::{
    Effect, Recovery, Tool, ToolError, ToolErrorCode, ToolErrorMessage, ToolExecutor, ToolInvokeRequest,
    ToolInvokeResponse, ToolOutcomeRequest, ToolRegistration,
};
use crate::messaging::{
    BusError, ErrorReply, Headers, Message, MessageEnvelope, PayloadError, RequestClient, RequestError, headers,
};
use crate::{BoxError, CallContext, CallId, MessageId};

/// Maximum time for the answer to the question for the outcome of a call. Workers without a
/// record of it do not answer.
const RECOVERY_TIME: Duration = Duration::from_secs(5);

/// Creates a tool that `executor` runs in another program, with the effect and the time limit of
/// `registration`.
///
/// Set both in the registration, not with the setters of the [`Tool`] afterwards: the executor
/// needs them too, to decide how a call without an answer ends.
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::messaging::{Bus, RequestClient, headers};
/// use rockbot_core::tool::{Effect, RemoteToolExecutor, Tool, ToolRegistration, remote_tool};
/// use serde_json::json;
///
/// fn forecast(bus: Arc<dyn Bus>) -> Tool {
///     let client = Arc::new(RequestClient::new(bus, "clerk"));
///     let executor = RemoteToolExecutor::new(client)
///         .with_topic("tool.invoke.mcp")
///         .with_header(headers::MCP_SERVER, "weather");
///     let mut registration = ToolRegistration::new("forecast", "Tells the weather.", json!({"type": "object"}));
///     registration.effect = Effect::Pure;
///     remote_tool(registration, executor)
/// }
/// ```
pub fn remote_tool(registration: ToolRegistration, executor: RemoteToolExecutor) -> Tool {
    let executor = RemoteToolExecutor {
        effect: registration.effect,
        time_limit: registration.hints.time_limit.unwrap_or(executor.time_limit),
        ..executor
    };
    Tool::new(registration, executor)
}

/// An executor that runs calls over a bus: it publishes a [`ToolInvokeRequest`] and waits for the
/// answer.
///
/// The answer is a [`ToolInvokeResponse`], a [`ToolErrorMessage`] or an [`ErrorReply`]. The
/// request carries the caller's principal and trace, an idempotency key, and in `rb-timeout-ms`
/// the time that the caller waits: the shortest of the context's remaining time, the executor's
/// limit and the client's. Neither trust nor grants cross the bus: the program that serves the
/// call decides by its own configuration.
///
/// If a mutating call gets no readable answer, it is not known whether it took effect: it fails
/// with [`ToolErrorCode::OutcomeUnknown`]. Once sent, it is awaited even if the turn is
/// cancelled, because its outcome must be known. Calls of other effects fail with
/// [`ToolErrorCode::Timeout`] or [`ToolErrorCode::ExecutionFailed`], and are abandoned on
/// cancellation. The serving program is notified of a cancellation, and of a call whose time is
/// over, if the executor was given [a way](Self::with_abandoned). The client counts and drops
/// answers that come late or twice.
///
/// When a turn resumes whose mutating call was interrupted, the executor asks the workers for its
/// outcome ([`ToolOutcomeRequest`]): a call that a worker has recorded as ended has its result,
/// any other an unknown outcome.
#[derive(Debug, Clone)]
pub struct RemoteToolExecutor {
    client: Arc<RequestClient>,
    topic: Arc<str>,
    headers: Headers,
    effect: Effect,
    time_limit: Duration,
    abandoned: Option<mpsc::Sender<MessageId>>,
}

/// A call that was sent. Dropped before its answer, it reports that the answer is no longer
/// awaited.
struct SentCall<'a> {
    abandoned: Option<&'a mpsc::Sender<MessageId>>,
    message: MessageId,
}

impl SentCall<'_> {
    fn report(&mut self) {
        if let Some(abandoned) = self.abandoned.take() {
            // A full channel loses the report: the call then runs to its end, or to the caller's time limit.
            let _ = abandoned.try_send(self.message.clone());
        }
    }
}

impl Drop for SentCall<'_> {
    fn drop(&mut self) {
        self.report();
    }
}

impl RemoteToolExecutor {
    /// Creates an executor that asks through `client` under the topic `tool.invoke`. Any number of
    /// executors can share one client. By default calls are mutating and may take 60 seconds.
    pub fn new(client: Arc<RequestClient>) -> Self {
        Self {
            client,
            topic: ToolInvokeRequest::TOPIC.unwrap_or_default().into(),
            headers: Headers::new(),
            effect: Effect::default(),
            time_limit: Duration::from_secs(60),
            abandoned: None,
        }
    }

    /// Sets the topic of calls. Default `tool.invoke`.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.topic = topic.into();
        self
    }

    /// Adds a header to each call, such as [`headers::TOOL_PROVIDER`] or [`headers::MCP_SERVER`].
    /// Headers that the executor writes itself take precedence.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the effect of the calls. [`remote_tool`] takes it from the registration.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets how long to wait for an answer. Default 60 seconds; [`remote_tool`] takes it from the
    /// registration if that has a time limit.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets a channel that takes the message id of each call that is cancelled, gets no answer in
    /// time or is dropped before it, so that the program that serves it can be told. Default: none. A
    /// full channel drops the id.
    #[must_use]
    pub fn with_abandoned(mut self, abandoned: mpsc::Sender<MessageId>) -> Self {
        self.abandoned = Some(abandoned);
        self
    }

    /// Builds a message about a call, with the remaining time, at most `limit`, and the idempotency
    /// key in its headers.
    fn question<M: Message + Serialize>(
        &self,
        message: &M,
        call: &CallId,
        cx: &CallContext,
        limit: Duration,
    ) -> Result<MessageEnvelope, ToolError> {
        if cx.cancellation().is_cancelled() {
            return Err(ToolError::new(
                ToolErrorCode::Cancelled,
                "not run: the call was cancelled",
            ));
        }
        let left = cx.time_left().unwrap_or(Duration::MAX);
        let limit = left.min(limit).min(self.client.time_limit()).as_millis();
        if limit == 0 {
            return Err(ToolError::execution_failed("not run: no time was left for it"));
        }
        let mut envelope = MessageEnvelope::of(message).map_err(|error| ToolError::from(BoxError::from(error)))?;
        envelope.headers = self.headers.clone();
        Ok(envelope
            .with_context(cx)
            .with_header(headers::TIMEOUT_MS, limit.to_string())
            .with_header(headers::IDEMPOTENCY_KEY, cx.idempotency_key(call)))
    }

    /// Converts the answer into the response or the error of the call.
    fn read(&self, request: &ToolInvokeRequest, answer: &MessageEnvelope) -> Result<ToolInvokeResponse, ToolError> {
        if answer.message_type == ToolErrorMessage::TYPE {
            let error: ToolErrorMessage = answer.payload().map_err(|error| self.lost(error))?;
            self.check_call(request, &error.tool_call_id)?;
            return Err(ToolError::from(error).after(self.effect));
        }
        let response: ToolInvokeResponse = answer.payload().map_err(|error| self.lost(error))?;
        self.check_call(request, &response.tool_call_id)?;
        match response.code {
            Some(code) if response.is_error => {
                Err(ToolError::new(code, response.content.into_words()).after(self.effect))
            }
            _ => Ok(response),
        }
    }

    /// Checks that the answer belongs to the call that was asked.
    fn check_call(&self, request: &ToolInvokeRequest, answered: &CallId) -> Result<(), ToolError> {
        let asked = &request.tool_call_id;
        if answered == asked {
            return Ok(());
        }
        let message = format!("the answer to call `{asked}` names the call `{answered}`");
        Err(self.lost(BoxError::from(message)))
    }

    /// Converts a request without a readable answer into the error of the call.
    fn unanswered(&self, error: RequestError) -> ToolError {
        match error {
            RequestError::Refused(ErrorReply {
                code,
                message,
                is_retryable,
            }) => {
                let code = ToolErrorCode::named(&code);
                let error = ToolError::new(code, message).with_retryable(is_retryable);
                error.after(self.effect)
            }
            RequestError::TimedOut { .. } => ToolError::too_long(&error, self.effect).with_source(error),
            error if was_never_sent(&error) => ToolError::execution_failed(error.to_string())
                .with_retryable(error.retry_helps())
                .with_source(error),
            error => self.lost(error),
        }
    }

    /// Returns the error of a call whose answer is lost.
    fn lost(&self, error: impl Into<BoxError>) -> ToolError {
        let error = error.into();
        let error_of_call = match self.effect {
            Effect::Pure | Effect::Idempotent => ToolError::execution_failed(error.to_string()),
            Effect::Mutating => ToolError::outcome_unknown(&error),
        };
        error_of_call.with_source(error)
    }
}

#[async_trait]
impl ToolExecutor for RemoteToolExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let question = self.question(&request, &request.tool_call_id, cx, self.time_limit)?;
        let mut sent = SentCall {
            abandoned: self.abandoned.as_ref(),
            message: question.message_id.clone(),
        };
        let mut asking = pin!(self.client.call(&self.topic, question));
        let asked = match cx.cancellation().run_until_cancelled(asking.as_mut()).await {
            Some(asked) => asked,
            None if self.effect == Effect::Mutating => {
                // The program may still refuse to begin it; if it has begun, the outcome must be known.
                sent.report();
                asking.await
            }
            None => {
                let error = ToolError::new(ToolErrorCode::Cancelled, "abandoned: the call was cancelled");
                return Err(error);
            }
        };
        if !gave_up(&asked) {
            sent.abandoned = None;
        }
        let answer = asked.map_err(|error| self.unanswered(error))?;
        self.read(&request, &answer)
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let asked = ToolOutcomeRequest::new(request.clone());
        let topic = ToolOutcomeRequest::TOPIC.unwrap_or_default();
        let Ok(question) = self.question(&asked, &request.tool_call_id, cx, RECOVERY_TIME) else {
            return Recovery::Unknown;
        };
        let Ok(answer) = self.client.call(topic, question).await else {
            return Recovery::Unknown;
        };
        match self.read(request, &answer) {
            Ok(response) => Recovery::Finished(response),
            Err(error) if error.code() != ToolErrorCode::OutcomeUnknown => {
                Recovery::Finished(request.clone().fail(&error))
            }
            Err(error) if error.retry_helps() => Recovery::Running,
            Err(_) => Recovery::Unknown,
        }
    }
}

/// Returns `true` if the caller awaits an answer no longer that may still come.
fn gave_up<T>(asked: &Result<T, RequestError>) -> bool {
    matches!(
        asked,
        Err(RequestError::TimedOut { .. } | RequestError::Bus(BusError::Provider { .. }))
    )
}

/// Returns `true` if the call certainly reached no other program, so that it cannot have taken
/// effect.
fn was_never_sent(error: &RequestError) -> bool {
    match error {
        RequestError::NoSubscribers(_)
        | RequestError::NotSent { .. }
        | RequestError::Payload(PayloadError::Unwritable { .. }) => true,
        RequestError::Bus(error) => !matches!(error, BusError::Closed | BusError::Provider { .. }),
        RequestError::TimedOut { .. } | RequestError::Refused(_) | RequestError::Payload(_) => false,
    }
}
