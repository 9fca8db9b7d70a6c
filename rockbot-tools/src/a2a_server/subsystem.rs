//! The subsystem of a host that serves its agent to other agents: [`A2aServer`].

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::service::AgentSkill;
use rockbot_core::store::MediaStore;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{ToolRegistry, ToolSelector};
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, Principal};

use super::admission::Admission;
use super::caller::{A2aCaller, ASK_CALLER, name_of};
use super::card::{Card, CardText};
use super::door::Door;
use super::endpoint::A2aEndpoint;
use super::input::{self, CallerBriefing};
use super::operations::Operations;
use super::settings::A2aServerSettings;
use super::tasks::TaskTable;
use super::watch::Watch;
use crate::a2a_callers::CallerTrust;
use crate::a2a_callers::chains::Chains;
use crate::egress::{EgressClient, EgressPolicy};
use crate::http_server::{MAX_CONNECTIONS, Serving, listen, serve};

/// Default operator.
const OPERATOR: &str = "local";

/// A host's agent for other agents, by the protocol A2A (agent to agent) over HTTP.
///
/// It serves version 1.0, over JSON-RPC and over plain HTTP, and version 0.3 over JSON-RPC; the
/// agent card says so at `/.well-known/agent-card.json`. A message becomes a turn: a task is its
/// journal, so it survives a restart, and a stream that is cut is subscribed to again. A turn
/// that needs a fact from its caller asks with the tool `ask_caller`, 20 times at most, and the
/// task waits for input.
///
/// Each [caller](A2aCaller) is a principal of its own, `a2a:NAME`, and its messages are
/// untrusted. A client may name an address to which the changes of a task are told (push
/// notifications), with a token of its own. Its turns have the [tools](Self::tools) that are named,
/// and none by default. A call that needs an approval waits for the [operator](Self::operator), who
/// gets an announcement with the agents through which the task came, and decides.
///
/// A server without callers serves any program of this machine, and listens nowhere else. Options
/// come from code, then from the section [`A2aServer`](super::settings) of the configuration.
///
/// Bounds: bodies of 4 MiB that arrive within 30 s, 256 connections, 256 requests that wait or
/// stream, 64 open tasks of a caller, 2 000 tasks in all; tasks are kept for a day after their end.
///
/// # Examples
///
/// ```
/// use rockbot_core::subsystem::Subsystem as _;
/// use rockbot_tools::a2a_server::{A2aCaller, A2aServer};
///
/// // A host takes it by `.add(…)`.
/// let server = A2aServer::new()
///     .listen("127.0.0.1:0")
///     .caller(A2aCaller::new("partner", "sesame".to_owned()).tools(["search_catalog"]));
/// assert_eq!(server.name(), "a2a-server");
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct A2aServer {
    address: Option<String>,
    url: Option<String>,
    description: Option<String>,
    version: Option<String>,
    skills: Vec<AgentSkill>,
    tools: Vec<ToolSelector>,
    trust: Option<CallerTrust>,
    operator: Option<Principal>,
    admission: Admission,
    egress: Option<EgressPolicy>,
    endpoint: A2aEndpoint,
    /// The address, once it is read.
    listen_at: Option<SocketAddr>,
    /// `true` if the settings turn the server off.
    is_off: bool,
}

impl A2aServer {
    /// Creates a server that listens nowhere, unless the configuration names an address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens at this address. Default: the setting `A2aServer.Address`. With port 0 the operating
    /// system chooses one; [`A2aEndpoint::address`] tells it.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets the public URL of the agent, for the card. Default: the setting `A2aServer.Url`, else
    /// the address. A server with a URL alone listens nowhere: a program mounts its
    /// [`router`](A2aEndpoint::router).
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Adds an agent that may call. Default: the setting `A2aServer.Callers`.
    pub fn caller(mut self, caller: A2aCaller) -> Self {
        self.admission.callers.add(caller);
        self
    }

    /// Allows tools to the callers that name none of their own. Default: the setting
    /// `A2aServer.Tools`, else none.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        self.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets the trust in callers that name none of their own, which narrows their tools. Default:
    /// the setting `A2aServer.Trust`, else `Act`.
    pub fn trust(mut self, trust: CallerTrust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Sets the purpose of the agent, for the card. Default: the setting `A2aServer.Description`.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the version of the agent, for the card. Default: the setting `A2aServer.Version`, else
    /// `1.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Adds a skill to the card. Default: the setting `A2aServer.Skills`, else one skill with the
    /// agent's description.
    pub fn skill(mut self, skill: AgentSkill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets the principal that is asked about calls that need an approval. Default: the setting
    /// `A2aServer.Operator`, else `local`.
    pub fn operator(mut self, principal: impl Into<Principal>) -> Self {
        self.operator = Some(principal.into());
        self
    }

    /// Sets the policy of push notifications. Default: the section `Egress` of the settings; by
    /// default no address inside of the network is gone to.
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.egress = Some(policy);
        self
    }

    /// Accepts this name in the header `Host`, besides the names of this machine and of the URL;
    /// `*` accepts all. Default: the setting `A2aServer.AllowedHosts`.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.admission.names.allow_hosts([host.into()]);
        self
    }

    /// Accepts calls of pages from this origin, such as `https://app.example.com`, besides the
    /// pages of this machine. Default: the setting `A2aServer.AllowedOrigins`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.admission.names.allow_origins([origin.into()]);
        self
    }

    /// Takes from the settings the values that code has left open.
    fn apply(&mut self, settings: A2aServerSettings) {
        self.address = self.address.take().or(settings.address);
        self.url = self.url.take().or(settings.url);
        self.description = self.description.take().or(settings.description);
        self.version = self.version.take().or(settings.version);
        self.operator = self.operator.take().or(settings.operator.map(Principal::from));
        self.trust = self.trust.or(settings.trust);
        if self.skills.is_empty() {
            self.skills = settings.skills;
        }
        if self.tools.is_empty() {
            self.tools = settings.tools;
        }
        if self.admission.callers.is_empty() {
            settings
                .callers
                .into_iter()
                .for_each(|caller| self.admission.callers.add(caller));
        }
        self.admission.names.allow_hosts(settings.allowed_hosts);
        self.admission.names.allow_origins(settings.allowed_origins);
    }

    fn check(&mut self) -> Result<(), BoxError> {
        let parsed = self.address.as_deref().map(str::parse::<SocketAddr>).transpose();
        self.listen_at = parsed.map_err(|_| "`A2aServer.Address` is an address with a port, such as 127.0.0.1:8940")?;
        let problem = match (self.listen_at, &self.url) {
            (None, None) => "nothing says where to serve: set `A2aServer.Address`, or call `.listen(…)`",
            (Some(at), None) if at.ip().is_unspecified() => {
                "callers do not reach the agent by its address: set `A2aServer.Url` to the URL that they use"
            }
            (Some(at), _) if !at.ip().is_loopback() && self.admission.callers.is_empty() => {
                "the agent would work for everyone who reaches its address: name `A2aServer.Callers`, or listen at 127.0.0.1"
            }
            (None, Some(_)) if self.admission.callers.is_empty() => {
                "the agent would work for everyone who reaches its URL: name `A2aServer.Callers`"
            }
            (_, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                "`A2aServer.Url` begins with https:// or http://"
            }
            _ => {
                return self
                    .admission
                    .callers
                    .problem()
                    .map_or(Ok(()), |problem| Err(problem.into()));
            }
        };
        Err(problem.into())
    }

    /// Returns the URL of the card, which ends with a slash.
    fn base(&self, address: Option<SocketAddr>) -> String {
        let url = match (&self.url, address) {
            (Some(url), _) => url.clone(),
            (None, Some(address)) => format!("http://{address}"),
            (None, None) => String::new(),
        };
        format!("{}/", url.trim_end_matches('/'))
    }

    fn card(&self, name: &str, base: String, needs_key: bool) -> Card {
        let description = self.description.clone().unwrap_or_else(|| format!("The agent {name}."));
        let mut skills = self.skills.clone();
        if skills.is_empty() {
            let mut skill = AgentSkill::new("work").with_description(description.clone());
            skill.tags = vec!["agent".to_owned()];
            skills.push(skill);
        }
        let text = CardText {
            name: name.to_owned(),
            description,
            version: self.version.clone().unwrap_or_else(|| "1.0.0".to_owned()),
            skills,
            needs_key,
        };
        Card::new(text, base)
    }

    fn operations(&mut self, parts: &Parts, card: Card, serving: &Serving) -> Result<Arc<Operations>, BoxError> {
        Ok(Arc::new(Operations {
            turns: parts.require::<dyn TurnRunner>()?,
            media: parts.get::<dyn MediaStore>(),
            clock: parts.clock().clone(),
            tasks: TaskTable::open(parts.data_dir(), parts.clock().now())?,
            card,
            name: parts.identity().name().clone(),
            chains: parts.require::<Chains>()?,
            tools: std::mem::take(&mut self.tools),
            trust: self.trust.unwrap_or_default(),
            registry: parts.require::<dyn ToolRegistry>()?,
            operator: self.operator.take().unwrap_or_else(|| Principal::from(OPERATOR)),
            waiting: Operations::permits(),
            egress: EgressClient::new(self.egress.take().unwrap_or_default())?,
            notifying: Mutex::default(),
            stop: serving.stop.clone(),
            running: serving.tasks.clone(),
        }))
    }
}

#[async_trait]
impl Subsystem for A2aServer {
    fn name(&self) -> &str {
        "a2a-server"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let settings = A2aServerSettings::from_config(&config)?;
        self.is_off = !settings.is_enabled;
        if self.is_off {
            declarations.cost(PartCost::off("an A2A server").with_switch("the section `A2aServer`"));
            return Ok(());
        }
        self.apply(settings);
        self.check()?;
        let configured = EgressPolicy::from_config(&config)?;
        self.egress.get_or_insert(configured);
        declarations.provide(Arc::new(self.endpoint.clone()));
        let cost = PartCost::on("an A2A server").with_switch("the section `A2aServer`");
        declarations.cost(
            cost.with_tools([ASK_CALLER.into()])
                .with_model_calls("those of a turn for each message"),
        );
        // The receiver of the same host has the same chains.
        declarations.provide_default::<Chains>(|_| Ok(Arc::default()));
        declarations.tool(input::ask_caller());
        declarations.context_source(CallerBriefing);
        Ok(())
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        if self.is_off {
            return Ok(Box::new(Idle));
        }
        let serving = Serving::new("A2A clients");
        let listening = match self.listen_at {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let address = listening.as_ref().map(|(_, address)| *address);
        let base = self.base(address);
        let mut admission = std::mem::take(&mut self.admission);
        admission.names.add(address.map(|address| address.ip()), &base);
        let card = self.card(parts.identity().name(), base, !admission.callers.is_empty());
        let operations = self.operations(parts, card, &serving)?;
        watch_open(&operations);
        let door = Arc::new(Door::new(operations, admission));
        // A host starts once.
        let _ = self.endpoint.door.set(door.clone());
        if let Some((listener, address)) = listening {
            let _ = self.endpoint.address.set(address);
            let answer = move |request, _| {
                let door = door.clone();
                async move { door.answer(request).await }
            };
            serving
                .tasks
                .spawn(serve(listener, MAX_CONNECTIONS, serving.stop.clone(), answer));
        }
        Ok(Box::new(serving))
    }
}

/// Watches the tasks that had not ended when the host stopped, and tells the changes that were not
/// told then.
fn watch_open(operations: &Arc<Operations>) {
    for record in operations.tasks.all(|record| record.pending_push().is_some()) {
        operations.notify(&record.id);
    }
    for record in operations.tasks.all(|record| !record.state.is_terminal()) {
        if let Some(turn) = record.last_turn() {
            let chain = vec![name_of(&record.principal).to_owned()];
            operations
                .chains
                .set(record.principal.clone(), record.context.as_str().into(), chain);
            Watch::new(operations, &record, turn.clone()).spawn();
        }
    }
}
