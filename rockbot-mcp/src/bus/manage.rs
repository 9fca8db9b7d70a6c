//! The answers of a bridge to questions about its servers, and to requests to connect and
//! disconnect one.

use std::sync::{Arc, OnceLock};

use rockbot_core::BoxError;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{HandlerError, Message, MessageContext};
use serde::Serialize;
use tokio::sync::Notify;

use super::wire::{
    DetailsRequest, DetailsResponse, MANAGE_TOPIC, RefreshRequest, RegisterRequest, RegisterResponse, ToolDefinition,
    UnregisterRequest, UnregisterResponse,
};
use crate::connection::ListedTool;
use crate::index_event::fingerprint;
use crate::management::{register_url, unregister_server};
use crate::server::McpServer;
use crate::servers::McpServers;
use crate::service::Service;

/// Maximum length of the definitions in one answer, in bytes. A longer definition is an answer of
/// its own.
const MAX_PAGE: usize = 256 * 1024;

/// The bridge's side of questions.
#[derive(Debug, Clone)]
pub(super) struct Manager {
    pub(super) servers: Arc<OnceLock<McpServers>>,
    pub(super) asked: Arc<Notify>,
    /// The hosts where other agents may have servers connected.
    pub(super) hosts: Arc<[String]>,
}

impl Manager {
    /// Answers with the next tools of a server. If several bridges share a topic, only the bridge
    /// that has the server answers.
    pub(super) async fn details(&self, request: DetailsRequest, cx: &MessageContext) -> Result<(), BoxError> {
        authenticated(cx)?;
        let response = match self.find(&request.server_name) {
            Some(service) => page(&service, request.offset),
            None if is_for_all(cx) => return Ok(()),
            None => DetailsResponse {
                error: Some("this bridge has no such server".to_owned()),
                server_name: request.server_name,
                ..DetailsResponse::default()
            },
        };
        reply(&response, cx).await
    }

    /// Announces the index again, and lists the tools of a server again if the request names one.
    pub(super) fn refresh(&self, request: &RefreshRequest, cx: &MessageContext) -> Result<(), BoxError> {
        authenticated(cx)?;
        let service = request.server_name.as_deref().and_then(|name| self.find(name));
        if let Some(live) = service.and_then(|service| service.live()) {
            live.tools_changed.notify_one();
        }
        self.asked.notify_one();
        Ok(())
    }

    /// Connects a server at a host that the operator of the bridge has named.
    pub(super) async fn register(&self, request: RegisterRequest, cx: &MessageContext) -> Result<(), BoxError> {
        authenticated(cx)?;
        if self.hosts.is_empty() && is_for_all(cx) {
            return Ok(());
        }
        let registered = match (&request.command, &request.url, self.servers.get()) {
            (None, Some(url), Some(servers)) => register_url(servers, &self.hosts, &request.server_name, url),
            (Some(_), ..) => Err(refused("programs cannot be started by another agent")),
            _ => Err(refused("it has no URL")),
        };
        let response = RegisterResponse {
            server_name: request.server_name,
            success: registered.is_ok(),
            error: registered.as_ref().err().map(|error| error.message().to_owned()),
            summary: registered.ok(),
        };
        reply(&response, cx).await
    }

    /// Disconnects a server that an agent has had connected.
    pub(super) async fn unregister(&self, request: UnregisterRequest, cx: &MessageContext) -> Result<(), BoxError> {
        authenticated(cx)?;
        if self.find(&request.server_name).is_none() && is_for_all(cx) {
            return Ok(());
        }
        let removed = match self.servers.get() {
            Some(servers) if !self.hosts.is_empty() => unregister_server(servers, &request.server_name),
            _ => Err(refused("other agents connect and disconnect no servers of this bridge")),
        };
        let response = UnregisterResponse {
            server_name: request.server_name,
            success: removed.is_ok(),
            error: removed.err().map(|error| error.message().to_owned()),
        };
        reply(&response, cx).await
    }

    fn find(&self, name: &str) -> Option<Arc<Service>> {
        let runtime = self.servers.get()?.runtime()?;
        runtime
            .bridge
            .find(name.trim())
            .filter(|service| service.bridged().is_none())
    }
}

fn refused(why: &str) -> rockbot_core::tool::ToolError {
    rockbot_core::tool::ToolError::new(rockbot_core::tool::ToolErrorCode::Denied, why)
}

/// Returns `true` if a question goes to all bridges, so that only the bridge with the server
/// answers.
fn is_for_all(cx: &MessageContext) -> bool {
    *cx.delivery().topic == *MANAGE_TOPIC
}

/// Refuses messages of an unauthenticated channel.
fn authenticated(cx: &MessageContext) -> Result<(), HandlerError> {
    match cx.delivery().trust {
        Trust::Untrusted => Err(HandlerError::dead_letter(
            "questions about MCP servers are not taken from an unauthenticated channel",
        )),
        Trust::User | Trust::Host => Ok(()),
    }
}

async fn reply<M: Message + Serialize + Sync>(response: &M, cx: &MessageContext) -> Result<(), BoxError> {
    cx.reply(response).await?;
    Ok(())
}

/// Returns the tools of a server from `offset`, as many as one answer holds.
fn page(service: &Service, offset: usize) -> DetailsResponse {
    let state = service.state.borrow().clone();
    let server = &service.server;
    let mut length = 0;
    let fits = |tool: &ToolDefinition| {
        let schema = tool.parameters_schema.as_deref().unwrap_or_default();
        let of_tool = tool.name.len() + tool.description.len() + schema.len();
        let is_first = length == 0;
        length += of_tool + 1;
        is_first || length <= MAX_PAGE
    };
    let rest = state.tools.iter().skip(offset).map(|tool| definition(server, tool));
    let tools: Vec<_> = rest.take_while(fits).collect();
    let next = offset.saturating_add(tools.len());
    DetailsResponse {
        server_name: server.name().to_owned(),
        next_offset: (next < state.tools.len()).then_some(next),
        tools,
        error: None,
        fingerprint: Some(fingerprint(server, &state)),
        instructions: state.instructions.as_deref().map(str::to_owned),
        timeout_ms: u64::try_from(server.time_limit.as_millis()).ok(),
    }
}

fn definition(server: &McpServer, tool: &ListedTool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters_schema: Some(tool.schema.to_string()),
        effect: server.effect(tool.claimed),
    }
}
