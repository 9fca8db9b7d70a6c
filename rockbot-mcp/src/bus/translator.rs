//! Calls of servers' tools that other agents send, as calls of the tools that this host has about
//! its servers.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{MessageContext, headers};
use rockbot_core::support::loggable;
use rockbot_core::tool::{CallTranslator, ToolError, ToolErrorCode, ToolInvokeRequest};
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::wire::INVOKE_TOPIC;
use crate::bridge_link::PROVIDER;
use crate::servers::McpServers;
use crate::service::Service;
use crate::tool_call::connected;

/// The tools about a server that a bridge runs for other agents, under their own names.
const FORWARDED: [&str; 3] = ["mcp_list_resources", "mcp_read_resource", "mcp_get_prompt"];

/// The translator of a bridge. Before the host has started it knows no server.
#[derive(Debug, Default)]
pub(super) struct ServerCalls(pub(super) Arc<OnceLock<McpServers>>);

#[async_trait]
impl CallTranslator for ServerCalls {
    async fn translate(
        &self,
        call: &ToolInvokeRequest,
        cx: &MessageContext,
    ) -> Option<Result<ToolInvokeRequest, ToolError>> {
        let written = &cx.envelope().headers;
        let is_mcp = written
            .get(headers::TOOL_PROVIDER)
            .is_some_and(|provider| provider == PROVIDER);
        if !is_mcp && !cx.delivery().topic.starts_with(INVOKE_TOPIC) {
            return None;
        }
        if cx.delivery().trust == Trust::Untrusted {
            let refused = "calls are not taken from an unauthenticated channel";
            return Some(Err(ToolError::new(ToolErrorCode::Denied, refused)));
        }
        let server = written.get(headers::MCP_SERVER).map(|name| name.trim());
        Some(match server.filter(|name| !name.is_empty()) {
            Some(server) => self.of_server(server, call, cx).await,
            None if FORWARDED.contains(&call.tool_name.as_str()) => Ok(call.clone()),
            None => self.of_any(call),
        })
    }
}

impl ServerCalls {
    /// Translates a call that names its server, once the server is connected for the first time.
    async fn of_server(
        &self,
        server: &str,
        call: &ToolInvokeRequest,
        cx: &MessageContext,
    ) -> Result<ToolInvokeRequest, ToolError> {
        let service = self
            .services()
            .into_iter()
            .find(|service| service.server.key() == server.to_lowercase());
        let service = service.ok_or_else(|| self.unknown(&format!("MCP server `{}`", loggable(server))))?;
        let is_unknown = service.state.borrow().tools.is_empty();
        if is_unknown && let Some(limit) = headers::timeout(&cx.envelope().headers) {
            // Whatever comes of it, the call itself says it. Half of the time is left for that.
            let _ = timeout_at(cx.received() + limit / 2, connected(&service)).await;
        }
        invocation(service.server.name(), call)
    }

    /// Translates a call that names no server: it goes to the first server that has the tool.
    fn of_any(&self, call: &ToolInvokeRequest) -> Result<ToolInvokeRequest, ToolError> {
        let has_tool = |service: &Arc<Service>| {
            let tools = service.state.borrow().tools.clone();
            tools.iter().any(|tool| *tool.name == *call.tool_name.as_str())
        };
        let service = self.services().into_iter().find(has_tool);
        let unknown = || {
            self.unknown(&format!(
                "tool `{}` of an MCP server",
                loggable(call.tool_name.as_str())
            ))
        };
        invocation(service.ok_or_else(unknown)?.server.name(), call)
    }

    /// Returns the servers that this host itself is connected to.
    fn services(&self) -> Vec<Arc<Service>> {
        let runtime = self.0.get().and_then(McpServers::runtime);
        let services = runtime.map(|runtime| runtime.bridge.all()).unwrap_or_default();
        services
            .into_iter()
            .filter(|service| service.bridged().is_none())
            .collect()
    }

    fn unknown(&self, what: &str) -> ToolError {
        let services = self.services();
        let names: Vec<_> = services.iter().take(40).map(|service| service.server.name()).collect();
        let text = format!("this bridge has no {what}. Its servers are: {}", names.join(", "));
        ToolError::new(ToolErrorCode::ToolNotFound, text)
    }
}

/// Returns the call of a server's tool by the tool that calls any of them.
fn invocation(server: &str, call: &ToolInvokeRequest) -> Result<ToolInvokeRequest, ToolError> {
    let arguments: Value = serde_json::from_str(&call.arguments)
        .map_err(|error| ToolError::invalid_arguments(format!("the arguments are no JSON: {error}")))?;
    let arguments = json!({"server_name": server, "tool_name": call.tool_name, "arguments": arguments});
    let invocation = ToolInvokeRequest::new(call.tool_call_id.clone(), "mcp_invoke_tool", arguments.to_string());
    Ok(invocation.with_session_id(call.session_id.clone()))
}
