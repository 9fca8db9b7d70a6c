//! The subsystem of an agent whose MCP servers are connected to bridges: [`McpToolProxy`].

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::{Bus, RequestClient};
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Stage, Subsystem};
use tokio::sync::mpsc;

use super::settings::{ProxyOptions, pair};
use super::taking::{MAX_CALL, Taking, listen};
use super::wire::segment;
use crate::servers::{McpServerState, McpServers};
use crate::subsystem::McpTools;

/// Maximum number of announcements that wait for the subsystem; the bus holds the others back.
const MAX_WAITING: usize = 64;

/// Maximum number of cancellations that wait to be published; further cancellations are dropped,
/// and their calls run to their end.
const MAX_ABANDONED: usize = 256;

/// A subsystem that gives an agent the tools of MCP servers that bridges on its bus are connected
/// to.
///
/// A bridge is a host with [`McpBridge`](crate::McpBridge). The agent has the tools
/// `{server}__{tool}` and the tools about the servers, as with [`McpTools`], which this subsystem
/// contains: do not add both. Servers come and go with their bridges' announcements. A server
/// that several bridges announce belongs to the first bridge, until it leaves or its lease ends;
/// a server that the agent itself is connected to is never replaced.
///
/// A mutating call is sent once. If its answer is lost its outcome is unknown, and after a
/// restart of the agent the bridge is asked for the outcome.
///
/// Bridges send text of other programs. It is bounded (2 MiB for a server, 16 MiB for a bridge),
/// its definitions are pinned as the definitions of connected servers are, it makes the turns
/// that may see it untrusted, and every tool counts as mutating, unless the operator
/// [vouches](Self::vouch_for) for the server. Announcements over an unauthenticated channel are
/// ignored.
///
/// The section `McpProxy` of the configuration adds to the options set in code: `Bridges`, a list
/// of names, and `Vouched` and `Expected`, lists of pairs `bridge/server`.
///
/// ```
/// use rockbot_mcp::McpToolProxy;
///
/// // For `AgentHostBuilder::add`, in a host with a bus.
/// let tools = McpToolProxy::new().only("bridge").vouch_for("bridge", "time").expect("bridge", "time");
/// # let _ = tools;
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct McpToolProxy {
    tools: McpTools,
    options: ProxyOptions,
}

impl McpToolProxy {
    /// Creates the subsystem, which takes the servers of every bridge on the bus.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds servers that the agent itself is connected to, and the options of all servers. Default:
    /// the servers and options of the configuration.
    pub fn beside(mut self, tools: McpTools) -> Self {
        self.tools = tools;
        self
    }

    /// Takes the servers of the bridge `name`, and of others that are named so. Default: of all.
    pub fn only(mut self, name: impl Into<String>) -> Self {
        self.options.only.insert(name.into());
        self
    }

    /// Vouches for the server `server` of the bridge `bridge`, as
    /// [`McpServer::trusted`](crate::McpServer::trusted) does for a server that the agent itself is
    /// connected to: the effects of its tools count that the bridge's operator lets count.
    pub fn vouch_for(mut self, bridge: &str, server: &str) -> Self {
        self.options.vouched.insert(pair(bridge, server));
        self
    }

    /// Makes the host ready only while the tools of the server `server` of the bridge `bridge` are
    /// there. Default: it waits for none.
    pub fn expect(mut self, bridge: &str, server: &str) -> Self {
        self.options.expected.insert(pair(bridge, server));
        self
    }
}

#[async_trait]
impl Subsystem for McpToolProxy {
    fn name(&self) -> &str {
        "mcp-proxy"
    }

    fn stage(&self) -> Stage {
        Stage::Bridges
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        declarations.require::<dyn Bus>("give the host a bus with `.bus(…)` or `.shared_bus(…)`");
        declarations.cost(PartCost::on("mcp-proxy").with_model_calls("none"));
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        self.options.read(&config)?;
        self.tools.declare(declarations)
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let tools = Box::new(self.tools).start(parts).await?;
        let bus = parts.require::<dyn Bus>()?;
        let identity = parts.identity().clone();
        let servers = McpServers::clone(&*parts.require::<McpServers>()?);
        let runtime = servers.runtime().ok_or("the MCP servers have not started")?;
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let announcements = listen(&*bus, &identity, sender).await?;
        let results = format!("tool.result.{}.{}", segment(identity.name()), identity.instance_id());
        let client = RequestClient::new(bus.clone(), identity.name().clone())
            .with_reply_topic(results)
            .with_time_limit(MAX_CALL);
        let (abandoned, given_up) = mpsc::channel(MAX_ABANDONED);
        let expected = self.options.expected.clone();
        let taking = Taking::new(bus, identity, runtime, Arc::new(client), abandoned, self.options);
        let (task, work) = RunningTask::new(|stop| taking.run(announcements, messages, given_up, stop));
        tokio::spawn(work);
        Ok(Box::new(RunningProxy {
            task,
            tools,
            servers,
            expected,
        }))
    }
}

/// The handle of the running subsystem.
struct RunningProxy {
    task: RunningTask,
    tools: Box<dyn Running>,
    servers: McpServers,
    expected: BTreeSet<(String, String)>,
}

#[async_trait]
impl Running for RunningProxy {
    async fn stop(&self) {
        self.task.stop().await;
        self.tools.stop().await;
    }

    fn check(&self) -> Result<(), String> {
        self.task.check()?;
        self.tools.check()?;
        let taken = self.servers.list().into_iter();
        let taken = taken.filter(|server| server.state == McpServerState::Connected);
        let taken = taken.filter_map(|server| Some(pair(&server.bridge?, &server.name)));
        let taken: BTreeSet<_> = taken.collect();
        match self.expected.difference(&taken).next() {
            None => Ok(()),
            Some((bridge, server)) => Err(format!(
                "the bridge `{bridge}` has not announced the MCP server `{server}`"
            )),
        }
    }
}
