//! The executor of a tool that a tool service runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::messaging::BusError;
use rockbot_core::tool::{
    Effect, MAX_ARGUMENT_BYTES, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolHints, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistration,
};
use serde_json::{Map, Value};

use super::client::{CallError, CallLimits, ServiceClient, ServiceClients};
use super::descriptor::ResolvedTool;
use super::schema::schema;
use super::wire::RequestBody;

/// The time that the host waits longer than the executor, whose error says more.
const MARGIN: Duration = Duration::from_secs(5);

/// An executor that sends calls to a tool service.
#[derive(Debug)]
struct ServiceExecutor {
    client: Arc<ServiceClient>,
    /// The config values, as JSON text.
    config: Arc<str>,
    effect: Effect,
    limits: CallLimits,
}

/// Creates the tool of a descriptor.
pub(super) fn tool(resolved: &ResolvedTool, clients: &ServiceClients, limits: CallLimits) -> Tool {
    let descriptor = &resolved.descriptor;
    let hints = ToolHints::default()
        .with_time_limit(limits.total_time.saturating_add(MARGIN))
        .with_outside_text(resolved.is_announced);
    let registration = ToolRegistration::new(
        descriptor.name.as_str(),
        descriptor.description.as_str(),
        schema(&descriptor.arguments),
    );
    let registration = registration
        .with_source(format!("tool-service:{}", resolved.request))
        .with_effect(descriptor.effect)
        .with_hints(hints);
    let executor = ServiceExecutor {
        client: clients.of(&resolved.request, &resolved.response),
        config: Value::Object(resolved.config.clone()).to_string().into(),
        effect: descriptor.effect,
        limits,
    };
    Tool::new(registration, executor)
}

#[async_trait]
impl ToolExecutor for ServiceExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let cancelled = |what| Err(ToolError::new(ToolErrorCode::Cancelled, what));
        if cx.cancellation().is_cancelled() {
            return cancelled("not run: the call was cancelled");
        }
        let body = RequestBody {
            user: cx.principal().as_str(),
            config: &self.config,
            arguments: checked(&request)?,
        };
        let left = cx.time_left().unwrap_or(Duration::MAX);
        let limits = CallLimits {
            total_time: self.limits.total_time.min(left),
            ..self.limits
        };
        let calling = self.client.call(&body, cx.progress(), limits);
        let called = match self.effect {
            Effect::Pure | Effect::Idempotent => cx.cancellation().run_until_cancelled(calling).await,
            // Once sent, its outcome must be known.
            Effect::Mutating => Some(calling.await),
        };
        match called {
            None => cancelled("abandoned: the call was cancelled"),
            Some(Ok(text)) => Ok(request.succeed(text)),
            Some(Err(error)) => Err(self.error(error)),
        }
    }

    /// The arguments are passed through: the service validates them.
    fn checks_arguments(&self) -> bool {
        true
    }
}

impl ServiceExecutor {
    /// Converts an error into the error of the call.
    fn error(&self, error: CallError) -> ToolError {
        let what = format!("the tool service on `{}`: {error}", self.client.request_queue());
        let failed = match &error {
            CallError::TimedOut(_) => ToolError::too_long(what, self.effect),
            CallError::NoService | CallError::Failed { .. } => ToolError::execution_failed(what),
            // The bus did not take the request.
            CallError::Bus(cause) if !matches!(cause, BusError::Closed | BusError::Provider { .. }) => {
                ToolError::execution_failed(what)
            }
            CallError::Unreadable(_) | CallError::TooLong(_) | CallError::Bus(_) => match self.effect {
                Effect::Pure | Effect::Idempotent => ToolError::execution_failed(what),
                Effect::Mutating => ToolError::outcome_unknown(what),
            },
        };
        failed.with_source(error)
    }
}

/// Returns the arguments, which must be the text of a JSON object and are not looked at further.
fn checked(request: &ToolInvokeRequest) -> Result<&str, ToolError> {
    let arguments = match request.arguments.trim() {
        "" => "{}",
        text => text,
    };
    if arguments.len() > MAX_ARGUMENT_BYTES {
        let message = format!("the arguments have more than {MAX_ARGUMENT_BYTES} bytes: shorten them");
        return Err(ToolError::invalid_arguments(message));
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Ok(arguments),
        Err(error) => Err(ToolError::invalid_arguments(format!(
            "the arguments are no JSON object: {error}"
        ))),
    }
}
