//! The calls of a server's tools.
//!
//! A call that was not sent is an ordinary failure, made once more over a new connection whatever
//! its effect, and may be retried: only a call that was handed to a transport has an unknown
//! outcome. The error of a lost call names the cause: the end of the process with its last words,
//! the lease of the bridge, a ping. It is no time-out, so it does not count among the two rounds
//! after which a turn ends because its services do not respond.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode, JsonObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rockbot_core::CallContext;
use rockbot_core::tool::{
    ArgumentSchema, Effect, Recovery, SchemaError, ToolError, ToolErrorCode, ToolExecutor, ToolInvokeRequest,
    ToolInvokeResponse,
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::bridge_link::BridgeLink;
use crate::connection::{Abandoned, ListedTool, TOO_LONG, text_of};
use crate::content::{content_of, read_result};
use crate::requests::RunningCall;
use crate::server::McpServer;
use crate::service::{Link, Live, Service};

/// Time that a call waits for a connection that is being made.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(20);

/// Maximum number of requests of one call, to a server that asks the host for something before it
/// answers.
const MAX_ROUNDS: u32 = 10;

/// Time before a call is sent again to a server that asks for nothing but that; longer each time.
const AGAIN: Duration = Duration::from_millis(50);

/// Maximum number of sources of an error that are searched.
const MAX_SOURCES: usize = 16;

/// A call of a server's tool; each of its requests is made from it.
#[derive(Debug)]
pub(crate) struct ServerCall<'a> {
    tool: &'a str,
    /// The arguments, as the text of an object.
    text: &'a str,
    /// The arguments of the first request. Few calls need a second request, which parses them again.
    parsed: Option<JsonObject>,
}

impl<'a> ServerCall<'a> {
    /// Creates a call. `arguments` are the parsed `text`.
    pub(crate) fn new(tool: &'a str, text: &'a str, arguments: JsonObject) -> Self {
        Self {
            tool,
            text,
            parsed: Some(arguments),
        }
    }

    fn params(&mut self) -> CallToolRequestParams {
        let again = || serde_json::from_str(self.text).expect("the arguments were parsed before");
        let arguments = self.parsed.take().unwrap_or_else(again);
        CallToolRequestParams::new(self.tool.to_owned()).with_arguments(arguments)
    }
}

/// The executor of one tool of a server.
#[derive(Debug)]
pub(crate) struct TypedTool {
    service: Arc<Service>,
    tool: String,
    effect: Effect,
    schema: Value,
    /// The schema, compiled by the first call: of a thousand tools few are called.
    arguments: OnceLock<Result<ArgumentSchema, SchemaError>>,
}

impl TypedTool {
    pub(crate) fn new(service: Arc<Service>, listed: &ListedTool) -> Self {
        Self {
            tool: listed.name.clone(),
            effect: service.server.effect(listed.claimed),
            service,
            schema: listed.schema.clone(),
            arguments: OnceLock::new(),
        }
    }
}

impl TypedTool {
    /// Parses the arguments and validates them against the schema.
    fn arguments(&self, request: &ToolInvokeRequest) -> Result<JsonObject, ToolError> {
        let schema = self.arguments.get_or_init(|| ArgumentSchema::compile(&self.schema));
        let schema = schema
            .as_ref()
            .map_err(|error| ToolError::execution_failed(error.to_string()))?;
        match schema.check(&request.arguments) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) => Err(ToolError::invalid_arguments("the arguments are no JSON object")),
            Err(error) => Err(ToolError::of_arguments(&request.tool_name, error)),
        }
    }
}

#[async_trait]
impl ToolExecutor for TypedTool {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let (arguments, text) = (self.arguments(&request)?, request.arguments.clone());
        let asked = ServerCall::new(&self.tool, &text, arguments);
        call(&self.service, request, asked, self.effect, cx).await
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        match self.service.bridged() {
            Some(link) => link.recover(request, &self.tool, cx).await,
            None => Recovery::Unknown,
        }
    }

    fn checks_arguments(&self) -> bool {
        true
    }
}

/// Converts the result into the response of the call.
fn answer(request: ToolInvokeRequest, result: &CallToolResult) -> ToolInvokeResponse {
    let is_error = result.is_error == Some(true);
    let response = request.succeed(content_of(result)).with_error(is_error);
    response.with_code(is_error.then_some(ToolErrorCode::ExecutionFailed))
}

/// The failure of a call.
#[derive(Debug)]
enum CallFailure {
    /// Nothing was sent, so the call has had no effect.
    NotSent(ServiceError),
    /// It failed after it was sent, or may have been.
    Failed(ServiceError),
    /// The time of the caller was over.
    Deadline,
}

impl CallFailure {
    /// Returns the failure of a request that was handed to the transport.
    fn of(error: ServiceError) -> Self {
        if was_refused_by_transport(&error) {
            Self::NotSent(error)
        } else {
            Self::Failed(error)
        }
    }

    fn error(&self) -> Option<&ServiceError> {
        match self {
            Self::NotSent(error) | Self::Failed(error) => Some(error),
            Self::Deadline => None,
        }
    }

    fn is_lost(&self) -> bool {
        self.error().is_some_and(is_lost)
    }
}

/// Calls a tool, after waiting for a connection if need be. A call that was not sent, or may be
/// repeated, is made once more if its connection was lost; any other call is made once.
pub(crate) async fn call(
    service: &Service,
    request: ToolInvokeRequest,
    asked: ServerCall<'_>,
    effect: Effect,
    cx: &CallContext,
) -> Result<ToolInvokeResponse, ToolError> {
    if let Some(link) = service.bridged() {
        service.called.notify_one();
        // Boxed: calls of the host's own servers would have room for this otherwise. So are the rare
        // ways below.
        return Box::pin(call_bridged(service, &link, &request, asked, effect, cx)).await;
    }
    let result = call_here(service, asked, effect, cx).await?;
    Ok(answer(request, &result))
}

/// Calls a tool of a server that a bridge is connected to, as long as the bridge has it.
async fn call_bridged(
    service: &Service,
    link: &BridgeLink,
    request: &ToolInvokeRequest,
    asked: ServerCall<'_>,
    effect: Effect,
    cx: &CallContext,
) -> Result<ToolInvokeResponse, ToolError> {
    let gone = format!(
        "the bridge `{}` no longer has the MCP server `{}`: it left, or its lease ended",
        link.bridge,
        service.server.name()
    );
    if service.stop.is_cancelled() {
        return Err(ToolError::execution_failed(format!("{gone}. Nothing was called")).with_retryable(true));
    }
    tokio::select! {
        biased;
        answered = link.call(request, asked.tool, asked.text, effect, cx) => answered,
        () = service.stop.cancelled() => Err(lost(gone, effect)),
    }
}

/// Calls a tool of a server that this host itself is connected to.
async fn call_here(
    service: &Service,
    mut asked: ServerCall<'_>,
    effect: Effect,
    cx: &CallContext,
) -> Result<CallToolResult, ToolError> {
    let may_repeat = effect != Effect::Mutating;
    let live = match service.live() {
        Some(live) => live,
        None => Box::pin(connected_within(service, cx)).await?,
    };
    service.called.notify_one();
    let failure = match call_once(&live, &mut asked, &service.server, cx).await {
        Ok(result) => return Ok(result),
        Err(failure) => failure,
    };
    let is_repeated = match failure.error().and_then(ServiceError::auth_challenge) {
        // A call without an authorization that suffices has had no effect.
        Some(challenge) => live.answers.will_authorize(&service.server, challenge),
        None => failure.is_lost() && (may_repeat || matches!(failure, CallFailure::NotSent(_))),
    };
    if !is_repeated {
        return Err(Box::pin(failed(service, &live, failure, effect)).await);
    }
    live.closed.cancel();
    let live = Box::pin(connected_within(service, cx)).await?;
    match Box::pin(call_once(&live, &mut asked, &service.server, cx)).await {
        Ok(result) => Ok(result),
        Err(failure) => Err(Box::pin(failed(service, &live, failure, effect)).await),
    }
}

/// Returns the connection, or waits for a connection that is being made, as long as the caller
/// has time.
async fn connected_within(service: &Service, cx: &CallContext) -> Result<Arc<Live>, ToolError> {
    let left = cx.time_left().unwrap_or(Duration::MAX);
    let live = timeout(left, connected(service)).await;
    live.unwrap_or_else(|_| {
        let name = service.server.name();
        Err(ToolError::execution_failed(format!(
            "the MCP server `{name}` is not connected, and no time is left to wait for it. Nothing was called"
        ))
        .with_retryable(true))
    })
}

/// Returns the connection, or waits for a connection that is being made.
pub(crate) async fn connected(service: &Service) -> Result<Arc<Live>, ToolError> {
    if let Some(live) = service.live() {
        return Ok(live);
    }
    service.wake.notify_one();
    let mut states = service.state.subscribe();
    // The state of an earlier attempt, or of a connection that is found broken.
    let mut was_down = !matches!(states.borrow_and_update().link, Link::Connecting);
    let up = async {
        loop {
            let state = states.borrow_and_update().link.clone();
            match state {
                Link::Up(live) if !live.closed.is_cancelled() => return Ok(live),
                Link::Up(_) => {}
                Link::Connecting => was_down = false,
                Link::Bridged(_) => return Err("a bridge on the bus is".into()),
                // The reason of an earlier attempt: the attempt that was just asked for comes.
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

/// Makes a call, with as many requests as the server needs answers of the host.
async fn call_once(
    live: &Live,
    asked: &mut ServerCall<'_>,
    server: &McpServer,
    cx: &CallContext,
) -> Result<CallToolResult, CallFailure> {
    let running = RunningCall::new(cx);
    let _ended = running.end_on_drop();
    let limit = server.time_limit;
    let left = cx.time_left().unwrap_or(Duration::MAX);
    if left.is_zero() {
        return Err(CallFailure::NotSent(ServiceError::Timeout { timeout: left }));
    }
    let result = tokio::select! {
        // An answer that came before the end of the connection counts.
        biased;
        result = rounds(live, asked, server.name(), &running) => result,
        () = live.closed.cancelled() => Err(CallFailure::Failed(ServiceError::TransportClosed)),
        () = running.worked_for(limit) => Err(CallFailure::Failed(ServiceError::Timeout { timeout: limit })),
        () = sleep(left) => Err(CallFailure::Deadline),
    };
    match &result {
        Err(failure) if failure.is_lost() => live.closed.cancel(),
        Err(CallFailure::Failed(ServiceError::Timeout { .. })) => live.is_suspect.notify_one(),
        _ => {}
    }
    result
}

/// Sends the call until the server has all answers that it asks for.
async fn rounds(
    live: &Live,
    call: &mut ServerCall<'_>,
    server: &str,
    running: &Arc<RunningCall>,
) -> Result<CallToolResult, CallFailure> {
    let mut params = call.params();
    for round in 1..=MAX_ROUNDS {
        let answered = round_trip(live, params, running)
            .await
            .map_err(|failure| match failure {
                // The server may have begun in an earlier round.
                CallFailure::NotSent(error) if round > 1 => CallFailure::Failed(error),
                failure => failure,
            });
        let unreadable = CallFailure::Failed(ServiceError::UnexpectedResponse);
        let asked = match answered? {
            ServerResult::CallToolResult(result) => return Ok(result),
            // A reply without any member of a result: some servers answer so when a tool returns nothing.
            ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => return Ok(CallToolResult::default()),
            ServerResult::CustomResult(result) => {
                return read_result(result.0).ok_or(unreadable);
            }
            ServerResult::InputRequiredResult(asked) => asked,
            _ => return Err(unreadable),
        };
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() {
            // The server only wants to be asked again.
            Box::pin(sleep(AGAIN * round)).await;
        }
        let responses = Box::pin(live.answers.to_all(server, requests, running)).await;
        let responses = responses.map_err(|error| CallFailure::Failed(ServiceError::McpError(error)))?;
        params = call.params();
        params.input_responses = (!responses.is_empty()).then_some(responses);
        params.request_state = asked.request_state;
    }
    let max_rounds = MAX_ROUNDS as usize;
    Err(CallFailure::Failed(ServiceError::InputRequiredRoundsExceeded {
        max_rounds,
    }))
}

async fn round_trip(
    live: &Live,
    params: CallToolRequestParams,
    running: &Arc<RunningCall>,
) -> Result<ServerResult, CallFailure> {
    if live.closed.is_cancelled() {
        // The library takes requests for a moment longer, and sends them nowhere.
        return Err(CallFailure::NotSent(ServiceError::TransportClosed));
    }
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options();
    let handle = live.peer.send_cancellable_request(request, options).await;
    // The connection is over, and its queue with it.
    let handle = handle.map_err(CallFailure::NotSent)?;
    let _registered = live.running.register(&handle, running);
    let mut abandoned = Abandoned::of(&handle);
    let result = handle.await_response().await;
    abandoned.disarm();
    result.map_err(CallFailure::of)
}

fn is_lost(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) && error.auth_challenge().is_none()
}

/// Returns `true` if the transport could not hand the request to the server: the pipe was broken
/// before its line ended, or no connection was made.
fn was_refused_by_transport(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else {
        return false;
    };
    if error.error.is::<std::io::Error>() {
        return true;
    }
    // The library names no source here.
    if let Some(StreamableHttpError::Client(error)) = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        return error.is_connect();
    }
    let first: &(dyn std::error::Error + 'static) = &*error.error;
    let sources = std::iter::successors(Some(first), |error| error.source());
    let mut sources = sources
        .take(MAX_SOURCES)
        .filter_map(|error| error.downcast_ref::<reqwest::Error>());
    sources.any(reqwest::Error::is_connect)
}

/// Converts the failure of a call into an error that tells the model its next step.
async fn failed(service: &Service, live: &Live, failure: CallFailure, effect: Effect) -> ToolError {
    let name = service.server.name();
    match failure {
        CallFailure::Deadline => ToolError::too_long(
            format!("the caller's time was over before the MCP server `{name}` answered"),
            effect,
        ),
        CallFailure::NotSent(error) if error.auth_challenge().is_none() => {
            let reason = match &error {
                ServiceError::Timeout { .. } => "no time was left for it".to_owned(),
                error => live.end.reason().await.unwrap_or_else(|| text_of(error)),
            };
            let text = format!("the call was not sent to the MCP server `{name}`: {reason}. Nothing was called");
            ToolError::execution_failed(text).with_retryable(true)
        }
        CallFailure::Failed(error) if is_lost(&error) => {
            let mut text = format!("the connection to the MCP server `{name}` was lost during the call");
            if let Some(reason) = live.end.reason().await {
                text = format!("{text}: {reason}");
            }
            lost(text, effect)
        }
        CallFailure::NotSent(error) | CallFailure::Failed(error) => refused(name, error, effect),
    }
}

/// Converts the answer of a server that is no result into an error.
fn refused(name: &str, error: ServiceError, effect: Effect) -> ToolError {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => ToolError::invalid_arguments(
            format!("`{name}` refuses the call: {}", text_of(&ServiceError::McpError(error))),
        ),
        ServiceError::McpError(error) if error.code == TOO_LONG => {
            let text =
                format!("the answer of the MCP server `{name}` was dropped: it is longer than 8 MiB; ask for less");
            lost(text, effect).with_retryable(false)
        }
        ServiceError::McpError(error) => {
            ToolError::execution_failed(format!("`{name}` failed: {}", text_of(&ServiceError::McpError(error))))
        }
        ServiceError::Timeout { timeout } => ToolError::too_long(
            format!("the MCP server `{name}` did not answer within {timeout:?}"),
            effect,
        ),
        error if error.auth_challenge().is_some() => ToolError::new(
            ToolErrorCode::Denied,
            format!(
                "the MCP server `{name}` demands an authorization for this call that was not granted; nothing was called"
            ),
        ),
        ServiceError::InputRequiredRoundsExceeded { max_rounds } => ToolError::execution_failed(format!(
            "the MCP server `{name}` asked for input {max_rounds} times without an answer to the call"
        )),
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
