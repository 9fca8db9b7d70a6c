//! Tools that run in another program, over a bus.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Effect, Tool, ToolError, ToolErrorCode, ToolErrorMessage, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration,
};
use crate::messaging::{
    BusError, ErrorReply, Headers, Message as _, MessageEnvelope, PayloadError, RequestClient, RequestError, headers,
};
use crate::{BoxError, CallContext, CallId};

/// A tool that `executor` runs in another program, with the effect and the time limit of `registration`.
///
/// Say both there, not with the setters of the [`Tool`] afterwards: a call that gets no answer is answered by its
/// effect.
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

/// Runs calls by asking over a bus: publishes a [`ToolInvokeRequest`] and waits for its answer.
///
/// The answer is a [`ToolInvokeResponse`], a [`ToolErrorMessage`] or an
/// [`ErrorReply`]. With the call go the caller's principal and trace, an idempotency
/// key, and in `rb-timeout-ms` how long the answer is waited for: the shortest of the context's remaining time, the
/// executor's own limit and the client's. Neither trust nor grants go with it: whoever serves the call decides for
/// itself what it believes.
///
/// Of a mutating call without a readable answer nobody knows whether it took effect:
/// [`ToolErrorCode::OutcomeUnknown`]. Once sent it is waited for even when it is cancelled, since what it did must be
/// known. Calls of other effects fail with [`ToolErrorCode::Timeout`] or [`ToolErrorCode::ExecutionFailed`], and are
/// given up when they are cancelled. Whoever runs the call is not told. Answers that come too late, or twice, are
/// counted by the client and thrown away.
#[derive(Debug, Clone)]
pub struct RemoteToolExecutor {
    client: Arc<RequestClient>,
    topic: Arc<str>,
    headers: Headers,
    effect: Effect,
    time_limit: Duration,
}

impl RemoteToolExecutor {
    /// Asks through `client`, which any number of executors share, under the topic `tool.invoke`. Calls are taken to
    /// be mutating and may take 60 seconds.
    pub fn new(client: Arc<RequestClient>) -> Self {
        Self {
            client,
            topic: ToolInvokeRequest::TOPIC.unwrap_or_default().into(),
            headers: Headers::new(),
            effect: Effect::default(),
            time_limit: Duration::from_secs(60),
        }
    }

    /// Publishing calls under `topic`.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.topic = topic.into();
        self
    }

    /// With this header on each call, such as [`headers::TOOL_PROVIDER`] or [`headers::MCP_SERVER`]. Headers that the
    /// executor writes itself win.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Knowing what calls change. [`remote_tool`] takes it from the registration.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Waiting this long for an answer. [`remote_tool`] takes it from the registration, if that says so.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    fn question(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Result<MessageEnvelope, ToolError> {
        if cx.cancellation().is_cancelled() {
            return Err(ToolError::new(
                ToolErrorCode::Cancelled,
                "not run: the call was cancelled",
            ));
        }
        let left = cx.time_left().unwrap_or(Duration::MAX);
        let limit = left.min(self.time_limit).min(self.client.time_limit()).as_millis();
        if limit == 0 {
            return Err(ToolError::execution_failed("not run: no time was left for it"));
        }
        let mut envelope = MessageEnvelope::of(request).map_err(|error| ToolError::from(BoxError::from(error)))?;
        envelope.headers = self.headers.clone();
        Ok(envelope
            .with_context(cx)
            .with_header(headers::TIMEOUT_MS, limit.to_string())
            .with_header(headers::IDEMPOTENCY_KEY, cx.idempotency_key(&request.tool_call_id)))
    }

    /// What the answer says about the call.
    fn read(&self, request: &ToolInvokeRequest, answer: &MessageEnvelope) -> Result<ToolInvokeResponse, ToolError> {
        if answer.message_type == ToolErrorMessage::TYPE {
            let error: ToolErrorMessage = answer.payload().map_err(|error| self.lost(error))?;
            self.check_call(request, &error.tool_call_id)?;
            return Err(self.judge(error.into()));
        }
        let response: ToolInvokeResponse = answer.payload().map_err(|error| self.lost(error))?;
        self.check_call(request, &response.tool_call_id)?;
        match response.code {
            Some(code) if response.is_error => Err(self.judge(ToolError::new(code, response.content))),
            _ => Ok(response),
        }
    }

    fn check_call(&self, request: &ToolInvokeRequest, answered: &CallId) -> Result<(), ToolError> {
        let asked = &request.tool_call_id;
        if answered == asked {
            return Ok(());
        }
        let message = format!("the answer to call `{asked}` says that it belongs to `{answered}`");
        Err(self.lost(BoxError::from(message)))
    }

    /// Why there is no answer that could be read.
    fn unanswered(&self, error: RequestError) -> ToolError {
        match error {
            RequestError::Refused(ErrorReply {
                code,
                message,
                is_retryable,
            }) => {
                let code = ToolErrorCode::named(&code);
                self.judge(ToolError::new(code, message).with_retryable(is_retryable))
            }
            RequestError::TimedOut { .. } => ToolError::too_long(&error, self.effect).with_source(error),
            error if was_never_sent(&error) => ToolError::execution_failed(error.to_string()).with_source(error),
            error => self.lost(error),
        }
    }

    /// A call whose answer is lost.
    fn lost(&self, error: impl Into<BoxError>) -> ToolError {
        let error = error.into();
        let what = match self.effect {
            Effect::Pure | Effect::Idempotent => ToolError::execution_failed(error.to_string()),
            Effect::Mutating => ToolError::outcome_unknown(&error),
        };
        what.with_source(error)
    }

    /// The service's own error. It may call a time-out what is one only for calls that do no harm twice.
    fn judge(&self, error: ToolError) -> ToolError {
        match (error.code(), self.effect) {
            (ToolErrorCode::Timeout, Effect::Mutating) => ToolError::outcome_unknown(&error).with_source(error),
            _ => error,
        }
    }
}

#[async_trait]
impl ToolExecutor for RemoteToolExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let question = self.question(&request, cx)?;
        let asking = self.client.call(&self.topic, question);
        let asked = match self.effect {
            Effect::Pure | Effect::Idempotent => cx.cancellation().run_until_cancelled(asking).await,
            Effect::Mutating => Some(asking.await),
        };
        let Some(asked) = asked else {
            return Err(ToolError::new(
                ToolErrorCode::Cancelled,
                "given up: the call was cancelled",
            ));
        };
        let answer = asked.map_err(|error| self.unanswered(error))?;
        self.read(&request, &answer)
    }
}

/// Whether the call reached nobody for sure.
fn was_never_sent(error: &RequestError) -> bool {
    match error {
        RequestError::NoSubscribers(_) | RequestError::Payload(PayloadError::Unwritable { .. }) => true,
        RequestError::Bus(error) => !matches!(error, BusError::Closed | BusError::Provider { .. }),
        RequestError::TimedOut { .. } | RequestError::Refused(_) | RequestError::Payload(_) => false,
    }
}
