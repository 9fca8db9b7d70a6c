//! The subsystem of a host that connects to servers: [`McpTools`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::files::DataFolder;
use rockbot_core::messaging::Bus;
use rockbot_core::service::ServiceSources;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, Stage, Subsystem};
use rockbot_core::tool::{PendingTools, Tool, ToolRegistry};
use rockbot_core::{BoxError, Digest};

#[cfg(feature = "oauth")]
use rockbot_tools::egress::EgressPolicy;

use crate::bridge::{Bridge, Options};
use crate::config::{self, ServerList};
use crate::exposure::McpExposure;
use crate::first_connections::FirstConnections;
use crate::index_event::{AnnouncedByBridge, announce};
use crate::management;
#[cfg(feature = "oauth")]
use crate::oauth::{AuthorizationHandler, Authorizer, CredentialFolder, CredentialStore, InMemoryCredentials};
use crate::pins::Pins;
use crate::reload;
use crate::requests::{Answers, ElicitationHandler, Sampler, SamplingLimits};
use crate::runtime::Runtime;
use crate::server::McpServer;
use crate::servers::McpServers;
use crate::service::Origin;
use crate::settings::McpSettings;

/// The tools of MCP servers as tools of an agent.
///
/// Each server is connected in the background once the host starts, and again when it is lost.
/// Its tools are named `{server}__{tool}`; [`McpExposure`] says which of them models are shown.
/// The part [`McpServers`] tells how the servers are.
///
/// The model has tools about the servers themselves, in the group `mcp`, with the guide
/// `mcp-tool-guide`: `mcp_list_services`, `mcp_get_service_details`, `mcp_invoke_tool`,
/// `mcp_find_tools`, `mcp_list_resources`, `mcp_read_resource` and `mcp_get_prompt`; and where
/// [registration](Self::allow_registration) is allowed, `mcp_register_server` and
/// `mcp_unregister_server`.
///
/// Servers come from code, from a file like `mcp.json`, and from the section
/// [`Mcp`](crate::settings) of the configuration. Of two with one name, the first in this order
/// is used.
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
    max_shown_tokens: Option<usize>,
    connect_timeout: Option<Duration>,
    startup_wait: Option<Duration>,
    ping_timeout: Option<Duration>,
    registration_hosts: Option<Vec<String>>,
    elicitation: Option<Arc<dyn ElicitationHandler>>,
    sampling: Option<SamplingLimits>,
    #[cfg(feature = "oauth")]
    oauth: OAuthParts,
    declared: Option<Declared>,
}

/// The parts of authorizations that code has set, and the policy that the settings have.
#[cfg(feature = "oauth")]
#[derive(Debug, Default)]
struct OAuthParts {
    handler: Option<Arc<dyn AuthorizationHandler>>,
    store: Option<Arc<dyn CredentialStore>>,
    policy: Option<EgressPolicy>,
}

/// The parts of the subsystem once it has declared.
#[derive(Debug)]
struct Declared {
    servers: Vec<(McpServer, Origin)>,
    /// The file, with the digest of its text.
    file: Option<(PathBuf, Option<Digest>)>,
    options: Options,
    pins: Pins,
    part: McpServers,
    first: Arc<FirstConnections>,
}

impl McpTools {
    /// Creates the tools of the servers in a file, in the form `{"mcpServers": {"name": {"command":
    /// …, "args": […], "env": {…}}}}`; a relative path is below the current folder.
    ///
    /// Values may have variables: `${NAME}`, `${NAME:-default}`. Beside the members of other clients,
    /// an entry may have `allowedTools`, `deniedTools`, `needsApproval`, `toolTimeoutMs`, `disabled`, `trusted` and,
    /// with the feature `oauth`, `oauth`. An entry that cannot be used, such as an entry with an
    /// unknown member, is logged and skipped, and keeps the host from being ready
    /// ([`McpServers::problems`]); a file that cannot be read keeps the host from being built. A
    /// change of the file is applied within seconds.
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

    /// Sets the maximum number of servers' tools that are always shown. Default: the setting
    /// `Mcp.MaxTools`.
    pub fn max_tools(mut self, tools: usize) -> Self {
        self.max_tools = Some(tools);
        self
    }

    /// Sets the maximum number of tokens of the small servers' tools that are always shown in the
    /// exposure [`Pinned`](McpExposure::Pinned). Default: the setting `Mcp.MaxShownTokens`.
    pub fn max_shown_tokens(mut self, tokens: usize) -> Self {
        self.max_shown_tokens = Some(tokens);
        self
    }

    /// Sets the time that a server has for its first answer, and again for its list of tools.
    /// Default: the setting `Mcp.ConnectTimeout`, which is one minute.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Sets how long, from the start of the host, turns wait for servers that are being connected, so
    /// that the first question has their tools. A cancelled turn does not wait. Default: the setting
    /// `Mcp.StartupWait`.
    pub fn startup_wait(mut self, limit: Duration) -> Self {
        self.startup_wait = Some(limit);
        self
    }

    /// Sets the time that a process has to answer a ping, before it counts as hung and is started
    /// again. Default: the setting `Mcp.PingTimeout`, which is 30 seconds.
    ///
    /// A process is pinged when it was idle for a minute, and after a call that it did not answer in
    /// time. A server that never answers pings is asked for its list of tools instead, after such a
    /// call.
    pub fn ping_timeout(mut self, limit: Duration) -> Self {
        self.ping_timeout = Some(limit);
        self
    }

    /// Sets the hosts where the model may connect servers at run time, by their URL, and disconnect
    /// those servers again. Default: the setting `Mcp.RegistrationHosts`, which is empty.
    ///
    /// Each registration waits for an approval; a model can neither start a program nor change a
    /// server of the operator. A host is a name or an address, without a port; name none of a network
    /// that the model should not reach.
    pub fn allow_registration<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.registration_hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the handler of servers' requests for input of the user. Default: the part `dyn
    /// ElicitationHandler` of the host, if it has one; else such requests are refused.
    pub fn elicitation(mut self, handler: impl ElicitationHandler) -> Self {
        self.elicitation = Some(Arc::new(handler));
        self
    }

    /// Lets servers ask the host's model while a tool of the server runs, within limits. Default: the
    /// setting `Mcp.AllowSampling`, which is off: such requests are refused.
    ///
    /// The model sees the server's texts alone, as text of others: no tools, and nothing of the
    /// conversation. The calls go through the host's chat layers, which tell them by their
    /// [`SamplingOrigin`](crate::SamplingOrigin).
    pub fn sampling(mut self, limits: SamplingLimits) -> Self {
        self.sampling = Some(limits);
        self
    }

    /// Sets the handler of servers' demands for an authorization by the user. Default: the part `dyn
    /// AuthorizationHandler` of the host, if it has one; else such servers are not connected.
    #[cfg(feature = "oauth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
    pub fn authorization(mut self, handler: impl AuthorizationHandler) -> Self {
        self.oauth.handler = Some(Arc::new(handler));
        self
    }

    /// Sets the store of the tokens that servers have granted. Default: files in `mcp/credentials` of
    /// the host's data folder, which only the user of the process may read; in memory without one.
    #[cfg(feature = "oauth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
    pub fn credentials(mut self, store: impl CredentialStore) -> Self {
        self.oauth.store = Some(Arc::new(store));
        self
    }

    /// Sets the policy of requests to authorization servers, which MCP servers name: a server in an
    /// internal network must be allowed. Default: the section `Egress` of the settings.
    #[cfg(feature = "oauth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.oauth.policy = Some(policy);
        self
    }

    /// Returns the part that authorizes connections.
    #[cfg(feature = "oauth")]
    fn authorizer(&mut self, parts: &Parts) -> Authorizer {
        let OAuthParts { handler, store, policy } = std::mem::take(&mut self.oauth);
        let handler = handler.or_else(|| parts.get::<dyn AuthorizationHandler>());
        Authorizer::new(
            handler,
            store.unwrap_or_else(|| Arc::new(InMemoryCredentials::default())),
            policy.unwrap_or_default(),
        )
    }

    /// Returns the cost of the part for a host: the tools about the servers, and the answers of its
    /// model that servers may ask for.
    fn cost(&self, tools: &[Tool]) -> PartCost {
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        let cost = PartCost::on("MCP servers")
            .with_switch("the section `Mcp`")
            .with_tools(names);
        match &self.sampling {
            Some(limits) => cost.with_model_calls(format!(
                "up to {} in each call of a server's tool, of {} tokens, if the server asks for them",
                limits.max_requests, limits.max_output_tokens
            )),
            None => cost,
        }
    }

    /// Returns the document of pins below the data folder, where the tokens of authorizations are
    /// kept, too.
    fn open_folder(&mut self, config: &Config, data_dir: Option<&Path>) -> Result<Pins, BoxError> {
        let folder = data_dir.map(|folder| DataFolder::open(folder.join("mcp")));
        let folder = folder.transpose()?.map(Arc::new);
        #[cfg(feature = "oauth")]
        {
            let policy = EgressPolicy::from_config(config)?;
            self.oauth.policy.get_or_insert(policy);
            if let (None, Some(folder)) = (&self.oauth.store, &folder) {
                self.oauth.store = Some(Arc::new(CredentialFolder(folder.clone())));
            }
        }
        #[cfg(not(feature = "oauth"))]
        let _ = config;
        Ok(folder.map(Pins::open).transpose()?.unwrap_or_default())
    }

    /// Returns the parts that answer requests of servers.
    fn answers(&mut self, parts: &Parts) -> Result<Answers, BoxError> {
        let sampler = |limits| {
            let chat = parts.require::<dyn ChatClient>()?;
            Ok::<_, BoxError>(Arc::new(Sampler { limits, chat }))
        };
        Ok(Answers {
            elicitation: self
                .elicitation
                .take()
                .or_else(|| parts.get::<dyn ElicitationHandler>()),
            sampling: self.sampling.take().map(sampler).transpose()?,
            #[cfg(feature = "oauth")]
            authorizer: Some(self.authorizer(parts)),
        })
    }

    /// Returns the servers of all sources, of two with one name the first, with the digest of the
    /// file. The part gets the entries that are not used.
    fn servers(
        &self,
        settings: &McpSettings,
        file: Option<&Path>,
        part: &McpServers,
    ) -> Result<GatheredServers, BoxError> {
        let mut list = ServerList::of(settings.commands());
        self.given.iter().cloned().for_each(|server| list.add(server));
        let given = list.servers.len();
        let before = list.problems.len();
        if let Some(file) = file {
            list.extend(config::read(file)?);
        }
        let of_file = given..list.servers.len();
        let problems_of_file = list.problems.split_off(before);
        settings.servers.iter().cloned().for_each(|server| list.add(server));
        list.problems.extend(settings.problems.iter().cloned());
        for problem in list.problems.iter().chain(&problems_of_file) {
            tracing::warn!("{problem}");
        }
        part.problems.set(list.problems, problems_of_file);
        let with_origin = |(position, server)| {
            if of_file.contains(&position) {
                (server, Origin::File)
            } else {
                (server, Origin::Program)
            }
        };
        let servers = list.servers.into_iter().enumerate().map(with_origin).collect();
        Ok((servers, list.digest))
    }
}

/// The servers with their origins, and the digest of the file that some of them are from.
type GatheredServers = (Vec<(McpServer, Origin)>, Option<Digest>);

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
        let data_dir = declarations.parts().data_dir().map(Path::to_owned);
        let below = |path: &PathBuf| {
            data_dir
                .as_ref()
                .map_or_else(|| path.clone(), |folder| folder.join(path))
        };
        let file = self.file.clone().or_else(|| settings.config_path.as_ref().map(below));
        let part = McpServers::default();
        let (servers, digest) = self.servers(&settings, file.as_deref(), &part)?;
        let pins = self.open_folder(&config, data_dir.as_deref())?;
        let hosts = self.registration_hosts.as_ref().unwrap_or(&settings.registration_hosts);
        let tools = management::tools(&part, hosts);
        if settings.allow_sampling {
            self.sampling.get_or_insert_default();
        }
        declarations.cost(self.cost(&tools));
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        declarations.guide(management::guide());
        if let Some(sources) = declarations.parts().get::<ServiceSources>() {
            sources.add(part.clone());
        }
        declarations.provide(Arc::new(part.clone()));
        let startup_wait = self.startup_wait.unwrap_or(settings.startup_wait);
        let first = Arc::new(FirstConnections::new(part.clone(), startup_wait));
        declarations.provide::<dyn PendingTools>(first.clone());
        self.declared = Some(Declared {
            servers,
            file: file.map(|file| (file, digest)),
            pins,
            options: Options {
                exposure: self.exposure.unwrap_or(settings.exposure),
                max_shown: self.max_tools.unwrap_or(settings.max_tools),
                max_shown_tokens: self.max_shown_tokens.unwrap_or(settings.max_shown_tokens),
                connect_limit: self.connect_timeout.unwrap_or(settings.connect_timeout),
                ping_limit: self.ping_timeout.unwrap_or(settings.ping_timeout),
                answers: Answers::default(),
                commands: settings.commands(),
            },
            part,
            first,
        });
        Ok(())
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let mut declared = self.declared.take().ok_or("the MCP servers are not declared")?;
        declared.options.answers = self.answers(parts)?;
        let bridge = Bridge::new(parts.require::<dyn ToolRegistry>()?, declared.options, declared.pins);
        let runtime = Arc::new(Runtime::new(bridge));
        for (server, origin) in declared.servers {
            runtime.connect(server, origin);
        }
        if let Some((file, digest)) = declared.file {
            let problems = declared.part.problems.clone();
            runtime.spawn(reload::watch(Arc::downgrade(&runtime), problems, file, digest));
        }
        let topic = || format!("tool.meta.mcp.{}", parts.identity().name());
        let is_announced = parts.get::<AnnouncedByBridge>().is_some();
        let bus = parts
            .get::<dyn Bus>()
            .filter(|_| !is_announced)
            .map(|bus| (bus, topic()));
        runtime.spawn(announce(Arc::downgrade(&runtime), declared.part.events.clone(), bus));
        declared.part.fill(&runtime);
        declared.first.begin();
        Ok(Box::new(Connected {
            runtime,
            part: declared.part,
        }))
    }
}

/// The handle of the host.
#[derive(Debug)]
struct Connected {
    runtime: Arc<Runtime>,
    part: McpServers,
}

#[async_trait]
impl Running for Connected {
    async fn stop(&self) {
        self.runtime.stop().await;
    }

    /// Reports the entries that are not used: the operator wants their servers, and the host lacks
    /// them.
    fn check(&self) -> Result<(), String> {
        let problems: Vec<_> = self.part.problems().iter().map(ToString::to_string).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }
}
