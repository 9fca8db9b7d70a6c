//! The subsystem of a host that connects to servers: [`McpTools`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::context::CancellationToken;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, Stage, Subsystem};
use rockbot_core::tool::ToolRegistry;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::bridge::{Bridge, Options};
use crate::config::{self, ServerList};
use crate::exposure::McpExposure;
use crate::server::McpServer;
use crate::servers::McpServers;
use crate::settings::McpSettings;
use crate::supervisor::supervise;

/// Time in which the connections are closed and their processes ended, when the host stops.
const CLOSING: Duration = Duration::from_secs(6);

/// The tools of MCP servers as tools of an agent.
///
/// Each server is connected in the background once the host starts, and again when it is lost. Its tools are named
/// `{server}__{tool}`; [`McpExposure`] says which of them models are shown. The part [`McpServers`] tells how the
/// servers are.
///
/// Servers come from code, from a file like `mcp.json`, and from the section [`Mcp`](crate::settings) of the
/// configuration. Of two with one name, the first in this order is used.
///
/// # Examples
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_mcp::{McpServer, McpServers, McpTools};
///
/// // A host calls this for `.add(McpTools::default().server(…))`; `McpTools::from_file("mcp.json")` reads a file.
/// let mut tools = McpTools::default().server(McpServer::process("time", "uvx").args(["mcp-server-time"]));
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// tools.declare(&mut declarations)?;
/// assert!(declarations.parts().get::<McpServers>().is_some());
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct McpTools {
    given: Vec<McpServer>,
    file: Option<PathBuf>,
    exposure: Option<McpExposure>,
    max_tools: Option<usize>,
    connect_timeout: Option<Duration>,
    declared: Option<Declared>,
}

/// What is known once the subsystem has declared.
#[derive(Debug)]
struct Declared {
    servers: Vec<McpServer>,
    options: Options,
    part: McpServers,
}

impl McpTools {
    /// Creates the tools of the servers in a file, in the form `{"mcpServers": {"name": {"command": …, "args": […],
    /// "env": {…}}}}`; a relative path is below the current folder.
    ///
    /// Values may have variables: `${NAME}`, `${NAME:-default}`. Beside the members of other clients, an entry may
    /// have `allowedTools`, `deniedTools`, `toolTimeoutMs`, `disabled` and `trusted`. An entry that cannot be used is
    /// logged; a file that cannot be read keeps the host from being built.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            file: Some(std::path::absolute(&path).unwrap_or(path)),
            ..Self::default()
        }
    }

    /// Adds a server.
    pub fn server(mut self, server: McpServer) -> Self {
        self.given.push(server);
        self
    }

    /// Sets which of the servers' tools models are shown. Default: the setting `Mcp.Exposure`.
    pub fn exposure(mut self, exposure: McpExposure) -> Self {
        self.exposure = Some(exposure);
        self
    }

    /// Sets the maximum number of servers' tools that are always shown. Default: the setting `Mcp.MaxTools`.
    pub fn max_tools(mut self, tools: usize) -> Self {
        self.max_tools = Some(tools);
        self
    }

    /// Sets the time limit of a connection, and of a list of tools. Default: the setting `Mcp.ConnectTimeout`.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Returns the servers of all sources, with those that cannot be used.
    fn servers(&self, settings: &McpSettings, data_dir: Option<&Path>) -> Result<ServerList, BoxError> {
        let mut list = ServerList::default();
        self.given.iter().cloned().for_each(|server| list.add(server));
        let below = |path: &PathBuf| data_dir.map_or_else(|| path.clone(), |folder| folder.join(path));
        let file = self.file.clone().or_else(|| settings.config_path.as_ref().map(below));
        if let Some(file) = file {
            let read = config::read(&file)?;
            list.problems.extend(read.problems);
            read.servers.into_iter().for_each(|server| list.add(server));
        }
        settings.servers.iter().cloned().for_each(|server| list.add(server));
        Ok(list)
    }
}

#[async_trait]
impl Subsystem for McpTools {
    fn name(&self) -> &str {
        "mcp"
    }

    fn stage(&self) -> Stage {
        Stage::Bridges
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let settings = McpSettings::from_config(&config)?;
        let list = self.servers(&settings, declarations.parts().data_dir())?;
        for problem in &list.problems {
            tracing::warn!("{problem}");
        }
        let cost = PartCost::on("MCP servers").with_switch("the section `Mcp`");
        declarations.cost(cost);
        let part = McpServers::default();
        declarations.provide(Arc::new(part.clone()));
        self.declared = Some(Declared {
            servers: list.servers,
            options: Options {
                exposure: self.exposure.unwrap_or(settings.exposure),
                max_shown: self.max_tools.unwrap_or(settings.max_tools),
                connect_limit: self.connect_timeout.unwrap_or(settings.connect_timeout),
            },
            part,
        });
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let declared = self.declared.ok_or("the MCP servers are not declared")?;
        let bridge = Arc::new(Bridge::new(parts.require::<dyn ToolRegistry>()?, declared.options));
        let connected = Connected {
            bridge: bridge.clone(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        for server in declared.servers {
            connected.connect(server);
        }
        declared.part.fill(bridge);
        Ok(Box::new(connected))
    }
}

/// The tasks of a host that has started.
#[derive(Debug)]
struct Connected {
    bridge: Arc<Bridge>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Connected {
    fn connect(&self, server: McpServer) {
        if let Some(service) = self.bridge.add(server, self.stop.child_token()) {
            self.tasks.spawn(supervise(self.bridge.clone(), service));
        }
    }
}

#[async_trait]
impl Running for Connected {
    async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("not all MCP servers ended in time; their processes are killed");
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // A host that is dropped without a stop: the supervisors end, and with them the processes.
        self.stop.cancel();
    }
}
