//! The way to a server through a bridge: calls of its tools, and the other features that it
//! offers.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::content::Content;
use rockbot_core::messaging::{RequestClient, headers};
use rockbot_core::tool::{
    Effect, Recovery, RemoteToolExecutor, ToolError, ToolExecutor as _, ToolInvokeRequest, ToolInvokeResponse,
};
use rockbot_core::{CallContext, IdSource as _, MessageId, RandomIds};
use serde_json::Value;
use tokio::sync::mpsc;

/// The kind of tool that calls name in their header.
pub(crate) const PROVIDER: &str = "mcp";

/// Maximum length of an error of a bridge, in bytes.
const MAX_ERROR: usize = 4 * 1024;

/// The way to one server through a bridge.
#[derive(Debug)]
pub(crate) struct BridgeLink {
    /// Name of the bridge.
    pub(crate) bridge: String,
    executor: RemoteToolExecutor,
    server: String,
}

impl BridgeLink {
    /// Creates the way to `server`: calls go under `topic`, and are awaited for `time_limit`.
    pub(crate) fn new(
        client: Arc<RequestClient>,
        abandoned: mpsc::Sender<MessageId>,
        bridge: &str,
        server: &str,
        topic: String,
        time_limit: Duration,
    ) -> Self {
        let executor = RemoteToolExecutor::new(client)
            .with_topic(topic)
            .with_header(headers::TOOL_PROVIDER, PROVIDER)
            .with_header(headers::CONTENT_TRUST, "tool-request")
            .with_abandoned(abandoned)
            .with_time_limit(time_limit);
        Self {
            bridge: bridge.to_owned(),
            executor,
            server: server.to_owned(),
        }
    }

    /// Calls a tool of the server for `request`.
    pub(crate) async fn call(
        &self,
        request: &ToolInvokeRequest,
        tool: &str,
        arguments: &str,
        effect: Effect,
        cx: &CallContext,
    ) -> Result<ToolInvokeResponse, ToolError> {
        let asked = remote(request, tool, arguments);
        let executor = self.of_server().with_effect(effect);
        let mut response = executor.execute(asked, cx).await.map_err(bounded)?;
        response.tool_name = request.tool_name.clone();
        Ok(response)
    }

    /// Asks the bridge for the outcome of a call.
    pub(crate) async fn recover(&self, request: &ToolInvokeRequest, tool: &str, cx: &CallContext) -> Recovery {
        let asked = remote(request, tool, &request.arguments);
        match self.of_server().recover(&asked, cx).await {
            Recovery::Finished(mut response) => {
                response.tool_name = request.tool_name.clone();
                Recovery::Finished(response)
            }
            other => other,
        }
    }

    /// Calls a tool of the bridge that shows the server and changes nothing.
    pub(crate) async fn forward(&self, tool: &str, arguments: Value, cx: &CallContext) -> Result<Content, ToolError> {
        let asked = ToolInvokeRequest::new(RandomIds.next_id(), tool, arguments.to_string());
        let executor = self.executor.clone().with_effect(Effect::Pure);
        Ok(executor.execute(asked, cx).await.map_err(bounded)?.content)
    }

    fn of_server(&self) -> RemoteToolExecutor {
        self.executor
            .clone()
            .with_header(headers::MCP_SERVER, self.server.clone())
    }
}

/// Returns the call of the server's tool that a call of the agent's tool stands for.
fn remote(request: &ToolInvokeRequest, tool: &str, arguments: &str) -> ToolInvokeRequest {
    ToolInvokeRequest::new(request.tool_call_id.clone(), tool, arguments).with_session_id(request.session_id.clone())
}

/// Cuts an error of a bridge: its text comes from another program.
fn bounded(error: ToolError) -> ToolError {
    if error.message().len() > MAX_ERROR {
        let text = error.message();
        let cut = format!("{}… (cut)", &text[..text.floor_char_boundary(MAX_ERROR)]);
        ToolError::new(error.code(), cut).with_retryable(error.retry_helps())
    } else {
        error
    }
}
