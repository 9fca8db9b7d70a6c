//! The part of a host that shows its servers to the program.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use rockbot_core::Digest;
use rockbot_core::support::one_line;
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::config::{ConfigProblem, ConfigProblems};
use crate::connection::ListedTool;
use crate::index_event::{MAX_BEHIND, McpServersIndexed};
use crate::naming::tool_name;
use crate::runtime::Runtime;
use crate::service::{Link, Service};

/// The servers of a host: their state and their tools. Cheap to clone.
///
/// A host with [`McpTools`](crate::McpTools) provides it as a part. It is empty until the host
/// has started.
#[derive(Clone)]
pub struct McpServers {
    runtime: Arc<OnceLock<Weak<Runtime>>>,
    pub(crate) problems: Arc<ConfigProblems>,
    pub(crate) events: broadcast::Sender<McpServersIndexed>,
}

impl Default for McpServers {
    fn default() -> Self {
        Self {
            runtime: Arc::default(),
            problems: Arc::default(),
            events: broadcast::Sender::new(MAX_BEHIND),
        }
    }
}

/// A server as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServerStatus {
    /// The name.
    pub name: String,
    /// The bridge on the bus that is connected to it, or `None` if this host is.
    pub bridge: Option<String>,
    /// The state of the connection.
    pub state: McpServerState,
    /// The tools, by their original names. They stay known while the server is connected again.
    pub tools: Vec<String>,
    /// The tools that are held back because their definition, or the entry of the server, has changed
    /// since it was first seen.
    pub held: Vec<String>,
    /// The tools that cannot be used and the pages of their list that failed, each with the reason.
    /// The others are there.
    pub left_out: Vec<String>,
}

/// The state of the connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpServerState {
    /// A connection is being made.
    Connecting,
    /// Calls can be made.
    Connected,
    /// The last attempt failed, for this reason. It is repeated in the background.
    Failed(String),
}

/// A definition of a tool that is held back, as its server sends it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpHeldTool {
    /// Original name.
    pub name: String,
    /// Description, in the words of the server and whole: show it escaped.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Digest of the definition as the server sent it; it is [accepted](McpServers::accept) by it.
    pub fingerprint: Digest,
}

impl McpHeldTool {
    fn of(tool: &ListedTool) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.sent.as_deref().unwrap_or(&tool.description).to_owned(),
            schema: tool.schema.clone(),
            fingerprint: tool.fingerprint,
        }
    }
}

/// An error of naming a server that a host does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no MCP server `{0}`")]
#[non_exhaustive]
pub struct UnknownServer(pub String);

/// An error of accepting definitions of tools. Nothing was accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpAcceptError {
    /// The host does not have the server.
    #[error(transparent)]
    UnknownServer(#[from] UnknownServer),
    /// Definitions differ from the definitions that the operator looked at: the server has changed
    /// them again, or they are no longer held.
    #[error("tools of the MCP server `{server}` have changed since they were looked at: {}; look at them again", .tools.join(", "))]
    Changed {
        /// Name of the server.
        server: String,
        /// Original names of the tools.
        tools: Vec<String>,
    },
}

impl McpServers {
    /// Returns all servers, sorted by name.
    pub fn list(&self) -> Vec<McpServerStatus> {
        let services = self.runtime().map(|runtime| runtime.bridge.all());
        services
            .unwrap_or_default()
            .iter()
            .map(|service| status(service))
            .collect()
    }

    /// Returns the entries of the configuration that are not used, from the declaration of the
    /// subsystem on. While there is one, the host is not ready.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        self.problems.all()
    }

    /// Returns the name that models call a server's tool by.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such server.
    pub fn tool_name(&self, server: &str, tool: &str) -> Result<rockbot_core::ToolName, UnknownServer> {
        let service = self.runtime().and_then(|runtime| runtime.bridge.find(server));
        let service = service.ok_or_else(|| UnknownServer(server.to_owned()))?;
        Ok(tool_name(service.server.name(), tool))
    }

    /// Returns the definitions of a server's tools that are held back, to look at before they are
    /// [accepted](Self::accept).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such server.
    pub fn held(&self, server: &str) -> Result<Vec<McpHeldTool>, UnknownServer> {
        let (service, _) = self.service(server)?;
        let held = service.state.borrow().held.clone();
        Ok(held.iter().map(McpHeldTool::of).collect())
    }

    /// Accepts definitions of a server's tools that the operator has looked at, as
    /// [`held`](Self::held) returned them: they come into use. Other definitions stay held.
    ///
    /// A server may change a definition between the look and the decision. So each is compared by its
    /// fingerprint with the definition that is held now, and a tool that changes later is held again.
    ///
    /// # Errors
    ///
    /// Returns an error, and accepts nothing, if there is no such server, or if a definition of
    /// `seen` is not held in this form any more.
    pub fn accept(&self, server: &str, seen: &[McpHeldTool]) -> Result<(), McpAcceptError> {
        let (service, runtime) = self.service(server)?;
        let held = service.state.borrow().held.clone();
        let is_held = |seen: &McpHeldTool| {
            let mut held = held.iter();
            held.any(|tool| tool.name == seen.name && tool.fingerprint == seen.fingerprint)
        };
        let changed = seen.iter().filter(|tool| !is_held(tool));
        let changed: Vec<_> = changed.map(|tool| one_line(&tool.name).into_owned()).collect();
        if !changed.is_empty() {
            return Err(McpAcceptError::Changed {
                server: service.server.name().to_owned(),
                tools: changed,
            });
        }
        let accepted = seen.iter().map(|tool| (tool.name.clone(), tool.fingerprint)).collect();
        let bridge = runtime.bridge.clone();
        runtime.spawn(async move {
            bridge.pins.accept(&service.server, accepted, &held).await;
            match service.live() {
                Some(live) => live.tools_changed.notify_one(),
                // Its bridge lists the tools again when they change, and not for this.
                None => bridge.release(&service),
            }
        });
        Ok(())
    }

    fn service(&self, server: &str) -> Result<(Arc<Service>, Arc<Runtime>), UnknownServer> {
        let found = self
            .runtime()
            .and_then(|runtime| Some((runtime.bridge.find(server)?, runtime)));
        found.ok_or_else(|| UnknownServer(server.to_owned()))
    }

    /// Waits until no server is being connected for the first time: each is connected or has failed.
    pub async fn settled(&self) {
        let Some(bridge) = self.runtime().map(|runtime| runtime.bridge.clone()) else {
            return;
        };
        let mut changes = bridge.watch();
        loop {
            changes.borrow_and_update();
            if bridge.unsettled().is_empty() || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns a receiver of the changes of the index from now on. A receiver that is more than 64
    /// events behind loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<McpServersIndexed> {
        self.events.subscribe()
    }

    /// Returns a receiver that is notified of each change of a server or its tools, or `None` before
    /// the host starts.
    pub fn watch(&self) -> Option<watch::Receiver<u64>> {
        self.runtime().map(|runtime| runtime.bridge.watch())
    }

    pub(crate) fn fill(&self, runtime: &Arc<Runtime>) {
        // A host starts once. The part does not keep the servers alive.
        let _ = self.runtime.set(Arc::downgrade(runtime));
    }

    /// Returns the running servers, or `None` before the host has started and after it has ended.
    pub(crate) fn runtime(&self) -> Option<Arc<Runtime>> {
        self.runtime.get()?.upgrade()
    }
}

fn status(service: &Service) -> McpServerStatus {
    let state = service.state.borrow().clone();
    McpServerStatus {
        name: service.server.name().to_owned(),
        bridge: service.server.bridge().map(str::to_owned),
        state: match state.link {
            Link::Connecting => McpServerState::Connecting,
            Link::Up(_) | Link::Bridged(_) => McpServerState::Connected,
            Link::Down(reason) => McpServerState::Failed(reason.to_string()),
        },
        held: state.held.iter().map(|tool| tool.name.clone()).collect(),
        tools: state.tools.iter().map(|tool| tool.name.clone()).collect(),
        left_out: state.left_out.iter().map(|left_out| left_out.what.clone()).collect(),
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}
