//! The subsystem of a host that serves its MCP servers to other agents: [`McpBridge`].

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Bus, MessageContext, SubscribeOptions};
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::tool::CallTranslator;
use tokio::sync::Notify;

use super::announcer::Announcer;
use super::manage::Manager;
use super::translator::ServerCalls;
use super::wire::{
    DetailsRequest, INVOKE_TOPIC, MANAGE_TOPIC, REFRESH_TOPIC, RefreshRequest, RegisterRequest, SHARED_SUBSCRIPTION,
    UnregisterRequest, invoke_topic, manage_topic,
};
use crate::index_event::AnnouncedByBridge;
use crate::servers::McpServers;

/// Default validity of an announcement.
const LEASE: Duration = Duration::from_secs(15);

/// Maximum number of calls that a bridge handles at once. The limits of its tools apply besides.
const MAX_CONCURRENCY: usize = 64;

/// A subsystem that serves the MCP servers of a host with [`McpTools`](crate::McpTools) to agents
/// on its bus, which have [`McpToolProxy`](crate::McpToolProxy).
///
/// The bridge announces its servers under `tool.meta.mcp.{name}` with a lease, and announces its
/// departure when it stops. It takes calls under `tool.invoke.mcp.{name}`, and calls of agents of
/// the original RockBot under `tool.invoke.mcp`. Bridges share the queue of each topic, so no
/// call runs in two of them. Give bridges that share `tool.invoke.mcp` the same servers: a call
/// that comes to a bridge without its server fails. A mutating call is recorded before it begins
/// and runs once at most, as with `AgentHostBuilder::serve_tools`; other tools of the host are
/// not served.
///
/// Everything that can publish on an authenticated channel of the bus can call every tool of the
/// servers that needs no approval. The host needs no model.
///
/// ```
/// use std::time::Duration;
/// use rockbot_mcp::{McpBridge, McpServer, McpTools};
///
/// // For `AgentHostBuilder::add`, both of them, in a host with a bus.
/// let tools = McpTools::default().server(McpServer::process("time", "uvx").args(["mcp-server-time"]));
/// let bridge = McpBridge::new().lease(Duration::from_secs(30));
/// # let _ = (tools, bridge);
/// ```
#[derive(Debug)]
#[must_use]
pub struct McpBridge {
    lease: Duration,
    registration_hosts: Vec<String>,
    servers: Arc<OnceLock<McpServers>>,
    asked: Arc<Notify>,
}

impl Default for McpBridge {
    fn default() -> Self {
        Self::new()
    }
}

impl McpBridge {
    /// Creates the subsystem.
    pub fn new() -> Self {
        Self {
            lease: LEASE,
            registration_hosts: Vec::new(),
            servers: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// Sets the time after which agents drop the servers of a bridge that was killed. Default 15
    /// seconds; agents count at least one second and at most five minutes. The bridge gives a sign of
    /// life three times as often as they count.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the hosts, such as `mcp.example.com`, where other agents may have servers connected by
    /// their URL, and disconnect those servers again. Default: none. The other agent asks its user
    /// for an approval.
    ///
    /// A request that goes to all bridges of a bus names none of them: allow a host at one bridge
    /// alone, or each connects the server.
    pub fn allow_registration<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.registration_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    fn handle_questions(&self, declarations: &mut Declarations) {
        let manager = Manager {
            servers: self.servers.clone(),
            asked: self.asked.clone(),
            hosts: self.registration_hosts.clone().into(),
        };
        let of = manager.clone();
        declarations.handle::<DetailsRequest, _>(move |request: DetailsRequest, cx: MessageContext| {
            let of = of.clone();
            async move { of.details(request, &cx).await }
        });
        let of = manager.clone();
        declarations.handle::<RegisterRequest, _>(move |request: RegisterRequest, cx: MessageContext| {
            let of = of.clone();
            async move { of.register(request, &cx).await }
        });
        let of = manager.clone();
        declarations.handle::<UnregisterRequest, _>(move |request: UnregisterRequest, cx: MessageContext| {
            let of = of.clone();
            async move { of.unregister(request, &cx).await }
        });
        declarations.handle::<RefreshRequest, _>(move |request: RefreshRequest, cx: MessageContext| {
            std::future::ready(manager.refresh(&request, &cx))
        });
    }
}

#[async_trait]
impl Subsystem for McpBridge {
    fn name(&self) -> &str {
        "mcp-bridge"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        declarations.require::<dyn Bus>("give the host a bus with `.bus(…)` or `.shared_bus(…)`");
        declarations.require::<McpServers>("add `McpTools` with the servers that the bridge is to serve");
        declarations.provide(Arc::new(AnnouncedByBridge));
        declarations.cost(PartCost::on("mcp-bridge").with_model_calls("none"));
        declarations.provide::<dyn CallTranslator>(Arc::new(ServerCalls(self.servers.clone())));
        declarations.serve_tools();
        self.handle_questions(declarations);
        let name = declarations.parts().identity().name().clone();
        let calls = SubscribeOptions::new().with_concurrency(MAX_CONCURRENCY);
        declarations.subscribe_to(invoke_topic(&name), calls.clone());
        declarations.share_subscription(INVOKE_TOPIC, SHARED_SUBSCRIPTION, calls);
        let questions = SubscribeOptions::new().ephemeral().with_concurrency(8);
        declarations.subscribe_to(MANAGE_TOPIC, questions.clone());
        // Processes of one name have the same servers, so a single process answers.
        declarations.subscribe_to(manage_topic(&name), SubscribeOptions::new().with_concurrency(8));
        declarations.subscribe_to(REFRESH_TOPIC, questions);
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let servers = McpServers::clone(&*parts.require::<McpServers>()?);
        // A host starts once.
        let _ = self.servers.set(servers.clone());
        let announcer = Announcer {
            bus: parts.require::<dyn Bus>()?,
            identity: parts.identity().clone(),
            lease: self.lease,
            servers,
            asked: self.asked,
        };
        let (running, task) = RunningTask::new(|stop| announcer.run(stop));
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}
