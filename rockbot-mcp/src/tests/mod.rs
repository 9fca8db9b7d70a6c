//! Tests of the bridge against servers in this process, which keep to the protocol or do not.

mod conformance;
mod eras;
mod exposure;
mod faults;
mod index;
mod leaks;
mod left_out;
mod liveness;
mod management;
#[cfg(feature = "oauth")]
mod oauth;
mod patience;
mod peer;
mod pins;
pub(crate) mod real;
mod reload;
mod requests;
mod texts;
mod tools;
mod web;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use peer::Peer;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{
    InMemoryToolRegistry, Tool, ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry,
};
use rockbot_core::{AgentIdentity, CallContext, SystemClock};
use serde_json::Value;

use crate::{McpServers, McpTools};

/// A host with nothing but the subsystem.
pub(crate) struct Host {
    registry: Arc<InMemoryToolRegistry>,
    pub(crate) servers: McpServers,
    pub(crate) running: Box<dyn Running>,
    parts: Parts,
    /// The tools about the servers themselves.
    managing: Vec<Tool>,
}

impl Host {
    /// Starts the subsystem, and waits until each server is connected or has failed.
    pub(crate) async fn start(tools: McpTools) -> Self {
        let host = Self::begin(tools).await;
        host.servers.settled().await;
        host
    }

    async fn begin(tools: McpTools) -> Self {
        Self::begin_with(tools, ScriptedModel::new()).await
    }

    /// Starts the subsystem in a host with this model.
    async fn begin_with(tools: McpTools, model: ScriptedModel) -> Self {
        Self::build(tools, model, Config::new()).await
    }

    /// Starts the subsystem in a host with this configuration.
    async fn configured(tools: McpTools, config: &str) -> Self {
        let host = Self::configured_at_once(tools, config).await;
        host.servers.settled().await;
        host
    }

    /// Starts the subsystem in a host with this configuration, and waits for no server.
    async fn configured_at_once(tools: McpTools, config: &str) -> Self {
        let config = Config::new().with_text("agent.json", config).unwrap();
        Self::build(tools, ScriptedModel::new(), config).await
    }

    /// Starts the subsystem in a host with this data folder.
    async fn start_in(tools: McpTools, data: &Path) -> Self {
        let parts = Parts::new(
            AgentIdentity::new("clerk"),
            Arc::new(SystemClock),
            Some(data.to_owned()),
        );
        let host = Self::build_of(parts, tools, ScriptedModel::new(), Config::new()).await;
        host.servers.settled().await;
        host
    }

    async fn build(tools: McpTools, model: ScriptedModel, config: Config) -> Self {
        let parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
        Self::build_of(parts, tools, model, config).await
    }

    async fn build_of(mut parts: Parts, mut tools: McpTools, model: ScriptedModel, config: Config) -> Self {
        let registry = Arc::new(InMemoryToolRegistry::new());
        parts.provide::<dyn ToolRegistry>(registry.clone());
        parts.provide(Arc::new(config));
        parts.provide::<dyn ChatClient>(Arc::new(model));
        let mut declarations = Declarations::new(parts);
        tools.declare(&mut declarations).unwrap();
        let declared = declarations.merge();
        let parts = declared.parts;
        let servers = McpServers::clone(&parts.get().unwrap());
        let running = Subsystem::start(Box::new(tools), &parts).await.unwrap();
        Self {
            registry,
            servers,
            running,
            parts,
            managing: declared.tools,
        }
    }

    /// Returns the names of the registered tools.
    fn tools(&self) -> Vec<String> {
        let snapshot = self.registry.snapshot();
        let names = snapshot
            .entries()
            .iter()
            .map(|entry| entry.registration().name.to_string());
        names.collect()
    }

    fn manages(&self, tool: &str) -> bool {
        self.managing.iter().any(|own| own.registration.name == *tool)
    }

    fn managing(&self, tool: &str) -> Tool {
        let own = self.managing.iter().find(|own| own.registration.name == *tool);
        own.unwrap_or_else(|| panic!("no tool {tool}")).clone()
    }

    /// Calls a tool about the servers, and returns its result or its error.
    async fn manage(&self, tool: &str, arguments: Value) -> Result<String, (ToolErrorCode, String)> {
        let request = ToolInvokeRequest::new("call 1", tool, arguments.to_string());
        let answer = self
            .managing(tool)
            .executor
            .execute(request, &CallContext::new("s"))
            .await;
        let answer = answer.map_err(|error| (error.code(), error.message().to_owned()))?;
        Ok(answer.content.into_words())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolInvokeResponse, ToolError> {
        self.call_in("s", tool, arguments).await
    }

    /// Calls a tool in a conversation.
    async fn call_in(&self, session: &str, tool: &str, arguments: Value) -> Result<ToolInvokeResponse, ToolError> {
        let snapshot = self.registry.snapshot();
        let executor = snapshot
            .find(tool)
            .unwrap_or_else(|| panic!("no tool {tool}"))
            .executor()
            .clone();
        let request = ToolInvokeRequest::new("call 1", tool, arguments.to_string());
        executor.execute(request, &CallContext::new(session)).await
    }

    /// Waits until the registered tools are these.
    pub(crate) async fn until_tools(&self, wanted: &[&str]) {
        let mut changes = self.registry.watch();
        let reached = async {
            while self.tools() != wanted {
                changes.changed().await.unwrap();
            }
        };
        let patience = Duration::from_secs(600);
        let reached = tokio::time::timeout(patience, reached).await;
        assert!(reached.is_ok(), "{:?}", self.tools());
    }
}

/// Waits until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition does not come to hold");
}

fn tools_of(peers: &[&Peer]) -> McpTools {
    peers
        .iter()
        .fold(McpTools::default(), |tools, peer| tools.server(peer.server()))
}
