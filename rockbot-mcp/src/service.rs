//! A server of a host: its description and its present state.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::service::Peer;
use rockbot_core::context::CancellationToken;
use rockbot_core::tool::Owner;
use tokio::sync::{Notify, watch};

use crate::bridge_link::BridgeLink;
use crate::connection::{ConnectionEnd, LeftOut, ListedTool};
use crate::requests::{Answers, RunningCalls};
use crate::server::McpServer;

/// A server and its present state.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) server: McpServer,
    pub(crate) origin: Origin,
    /// The position among the servers of the program. Servers of other origins are ordered by their
    /// names.
    position: usize,
    pub(crate) state: watch::Sender<ServiceState>,
    /// `true` once the first attempt to connect has ended and its tools, if any, are in the registry.
    pub(crate) is_settled: AtomicBool,
    /// The tools that are in the registry, if all of them are. Locked while they are replaced.
    pub(crate) registered: Mutex<Option<Registered>>,
    /// Wakes the supervisor before its back-off is over.
    pub(crate) wake: Notify,
    /// Ends the supervisor: the server is no longer configured, or the host ends.
    pub(crate) stop: CancellationToken,
    /// A tool of the server was called.
    pub(crate) called: Notify,
    pub(crate) owner: Owner,
}

/// The author of a server's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The program, or the section of its configuration.
    Program,
    /// A file, which may change while the host runs.
    File,
    /// A model. It may remove the server again, and no other.
    Model,
    /// A bridge on the bus, which is connected to the server.
    Bridge,
}

/// The known state of a server. Its tools stay while it is connected again.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceState {
    pub(crate) link: Link,
    pub(crate) tools: Arc<[ListedTool]>,
    /// The tools that are held back.
    pub(crate) held: Arc<[ListedTool]>,
    /// The tools and pages of the list that cannot be used, with the reasons.
    pub(crate) left_out: Arc<[LeftOut]>,
    pub(crate) instructions: Option<Arc<str>>,
}

/// The tools of a server as they are registered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Registered {
    pub(crate) tools: Arc<[ListedTool]>,
    pub(crate) instructions: Option<Arc<str>>,
    /// Number of tools, from the first, that are always shown.
    pub(crate) shown: usize,
    /// Maximum length of the words about the server in the line of its group, in bytes.
    pub(crate) max_words: usize,
}

/// The state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) enum Link {
    /// The first attempt, or an attempt after a loss, is under way.
    #[default]
    Connecting,
    /// Calls can be made.
    Up(Arc<Live>),
    /// Calls can be made through a bridge on the bus.
    Bridged(Arc<BridgeLink>),
    /// The last attempt failed, for this reason. It is repeated after a back-off.
    Down(Arc<str>),
}

/// The usable side of a connection.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    /// Lists the tools again.
    pub(crate) tools_changed: Arc<Notify>,
    /// Ends the connection, once a call has found it broken.
    pub(crate) closed: CancellationToken,
    pub(crate) end: ConnectionEnd,
    /// Has the server asked whether it still answers.
    pub(crate) is_suspect: Arc<Notify>,
    pub(crate) running: RunningCalls,
    pub(crate) answers: Answers,
}

impl Service {
    pub(crate) fn new(server: McpServer, origin: Origin, position: usize, stop: CancellationToken) -> Self {
        Self {
            owner: Owner::new(&format!("mcp:{}", server.name)),
            position: if origin == Origin::Program { position } else { 0 },
            origin,
            state: watch::Sender::default(),
            is_settled: AtomicBool::new(false),
            registered: Mutex::default(),
            wake: Notify::new(),
            called: Notify::new(),
            stop,
            server,
        }
    }

    /// Returns the place of the server in the order of the configuration. It is the same after each
    /// start.
    pub(crate) fn place(&self) -> (Origin, usize, String) {
        (self.origin, self.position, self.server.key())
    }

    /// Returns the live connection, if there is a connection that no call has found broken.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        match &self.state.borrow().link {
            Link::Up(live) if !live.closed.is_cancelled() => Some(live.clone()),
            Link::Up(_) | Link::Connecting | Link::Bridged(_) | Link::Down(_) => None,
        }
    }

    /// Returns the way through a bridge, if the server is reached by one.
    pub(crate) fn bridged(&self) -> Option<Arc<BridgeLink>> {
        match &self.state.borrow().link {
            Link::Bridged(link) => Some(link.clone()),
            Link::Connecting | Link::Up(_) | Link::Down(_) => None,
        }
    }
}
