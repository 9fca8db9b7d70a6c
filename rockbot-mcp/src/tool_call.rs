//! The calls of a server's tools.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, ErrorCode,
    JsonObject, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use rockbot_core::CallContext;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse};
use tokio::time::timeout;

use crate::connection::{ListedTool, text_of};
use crate::content::content_of;
use crate::service::{Link, Live, Service};

/// Time that a call waits for a connection that is being made.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(20);

/// Time in which a cancellation is sent.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// The executor of one tool of a server.
#[derive(Debug)]
pub(crate) struct TypedTool {
    service: Arc<Service>,
    tool: String,
    effect: Effect,
}

impl TypedTool {
    pub(crate) fn new(service: Arc<Service>, listed: &ListedTool) -> Self {
        Self {
            tool: listed.name.clone(),
            effect: service.server.effect(listed.claimed),
            service,
        }
    }
}

#[async_trait]
impl ToolExecutor for TypedTool {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let arguments: JsonObject = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are no JSON object: {error}")))?;
        let result = call(&self.service, &self.tool, arguments, self.effect, cx).await?;
        Ok(answer(request, &result))
    }
}

/// Converts the result into the response of the call.
pub(crate) fn answer(request: ToolInvokeRequest, result: &CallToolResult) -> ToolInvokeResponse {
    let is_error = result.is_error == Some(true);
    let response = request.succeed(content_of(result)).with_error(is_error);
    response.with_code(is_error.then_some(ToolErrorCode::ExecutionFailed))
}

/// Calls a tool, after waiting for a connection if need be. A call that may be repeated is made once more if its
/// connection was lost; another one never is.
pub(crate) async fn call(
    service: &Service,
    tool: &str,
    arguments: JsonObject,
    effect: Effect,
    cx: &CallContext,
) -> Result<CallToolResult, ToolError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let may_repeat = effect != Effect::Mutating;
    let live = connected(service).await?;
    service.called.notify_one();
    match call_once(&live, params.clone(), service.server.time_limit, cx).await {
        Err(error) if may_repeat && is_lost(&error) => {
            let live = connected(service).await?;
            let again = call_once(&live, params, service.server.time_limit, cx).await;
            again.map_err(|error| failed(service, error, effect))
        }
        result => result.map_err(|error| failed(service, error, effect)),
    }
}

/// Returns the connection, or waits for the one that is being made.
pub(crate) async fn connected(service: &Service) -> Result<Arc<Live>, ToolError> {
    if let Some(live) = service.live() {
        return Ok(live);
    }
    service.wake.notify_one();
    let mut states = service.state.subscribe();
    let mut was_down = matches!(states.borrow_and_update().link, Link::Down(_));
    let up = async {
        loop {
            let state = states.borrow_and_update().link.clone();
            match state {
                Link::Up(live) => return Ok(live),
                Link::Connecting => was_down = false,
                // The reason of an earlier attempt: the one that was just asked for comes.
                Link::Down(_) if was_down => {}
                Link::Down(reason) => return Err(reason),
            }
            if states.changed().await.is_err() || service.stop.is_cancelled() {
                return Err("it was removed".into());
            }
        }
    };
    let reason = match timeout(MAX_WAIT.min(service.server.time_limit), up).await {
        Ok(Ok(live)) => return Ok(live),
        Ok(Err(reason)) => reason,
        Err(_) => "it does not answer".into(),
    };
    let name = service.server.name();
    Err(ToolError::execution_failed(format!(
        "the MCP server `{name}` is not connected: {reason}. Nothing was called; it is tried again in the background"
    ))
    .with_retryable(true))
}

async fn call_once(
    live: &Live,
    params: CallToolRequestParams,
    limit: Duration,
    cx: &CallContext,
) -> Result<CallToolResult, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options();
    let handle = live.peer.send_cancellable_request(request, options).await?;
    let _route = live.progress.route(handle.progress_token.clone(), cx.progress());
    let mut abandoned = Abandoned::of(&handle);
    let answered = timeout(limit, handle.await_response()).await;
    let result = answered.unwrap_or(Err(ServiceError::Timeout { timeout: limit }));
    abandoned.disarm_unless_timed_out(&result);
    if result.as_ref().is_err_and(is_lost) {
        live.closed.cancel();
    }
    match result? {
        ServerResult::CallToolResult(result) => Ok(result),
        // A reply without any member of a result: some servers answer so when a tool returns nothing.
        ServerResult::EmptyResult(_) => Ok(CallToolResult::default()),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn is_lost(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_))
}

/// Converts the error of a call into one that says what the model can do.
fn failed(service: &Service, error: ServiceError, effect: Effect) -> ToolError {
    let name = service.server.name();
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => ToolError::invalid_arguments(
            format!("`{name}` refuses the call: {}", text_of(&ServiceError::McpError(error))),
        ),
        ServiceError::McpError(error) => {
            ToolError::execution_failed(format!("`{name}` failed: {}", text_of(&ServiceError::McpError(error))))
        }
        ServiceError::Timeout { timeout } => ToolError::too_long(
            format!("the MCP server `{name}` did not answer within {timeout:?}"),
            effect,
        ),
        error if is_lost(&error) => lost(
            format!("the connection to the MCP server `{name}` was lost during the call"),
            effect,
        ),
        ServiceError::UnexpectedResponse => {
            lost(format!("the answer of the MCP server `{name}` cannot be read"), effect)
        }
        error => lost(format!("the MCP server `{name}` failed: {}", text_of(&error)), effect),
    }
}

fn lost(what: String, effect: Effect) -> ToolError {
    match effect {
        Effect::Mutating => ToolError::outcome_unknown(what),
        Effect::Pure | Effect::Idempotent => ToolError::execution_failed(what).with_retryable(true),
    }
}

/// Tells the server that nothing waits for an answer any more, when it is dropped.
struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Abandoned {
    fn of(handle: &RequestHandle<RoleClient>) -> Self {
        Self {
            peer: handle.peer.clone(),
            id: Some(handle.id.clone()),
        }
    }

    fn disarm_unless_timed_out<T>(&mut self, result: &Result<T, ServiceError>) {
        if !matches!(result, Err(ServiceError::Timeout { .. })) {
            self.id = None;
        }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (peer, reason) = (self.peer.clone(), Some("nothing waits for the answer".to_owned()));
        let params = CancelledNotificationParam::new(Some(id), reason);
        // It ends at once, or after the time limit: the queue to a server that reads nothing is full.
        runtime.spawn(timeout(
            CANCEL_LIMIT,
            async move { peer.notify_cancelled(params).await },
        ));
    }
}
