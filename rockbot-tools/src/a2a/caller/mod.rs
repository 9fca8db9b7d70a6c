//! The side of an agent that hands tasks to other agents: [`A2aCaller`].

mod agents;
mod bus;
mod cancel;
mod clockwork;
mod ends;
mod files;
mod host;
mod http;
mod invoke;
mod listen;
mod reports;
mod settings;
mod tasks;
mod tell;
mod transport;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::{Bus, Subscription};
use rockbot_core::service::AgentDirectory;
use rockbot_core::store::WorkingMemory;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::tool::{Tool, ToolError, ToolGroup, stateful_tool};
use rockbot_core::turn::TurnRunner;
use tokio::sync::{Mutex, watch};

use super::GROUP;
use super::directory::Directory;
use super::known_file::KnownFile;
use crate::a2a_callers::chains::Chains;
use crate::agent_files::AgentFiles;
use crate::egress::{EgressClient, EgressPolicy};
use bus::BusTransport;
use host::Caller;
use http::HttpTransport;
pub use http::remote_agent::RemoteAgent;
use settings::{CallerSettings, minutes_long};
use tasks::PendingTasks;
use transport::Transport;

/// Tools that hand a model's tasks to other agents: `invoke_agent`,
/// `list_known_agents`, `get_agent_details`, `register_agent`, `unregister_agent`,
/// `list_agent_tasks`, `cancel_agent_task`.
///
/// `invoke_agent` returns at once: the answer (a result, an error, a question, or silence) comes
/// as one message of the same conversation, also after a restart of the host. Statuses are told
/// to the user without a model. A turn that is no conversation (a wisp, or the task of yet
/// another agent) waits in the call, and the result of the call is the answer.
///
/// An agent is known if it announces itself on the bus, if the operator names it
/// ([`agent_at`](Self::agent_at), or the file `well-known-agents.json`), or if the model registers
/// it. An agent with a URL is called by the A2A protocol over HTTP, 1.0 or 0.3, an agent without
/// one over the bus. An announced agent is
/// forgotten when it leaves or is silent for a day. Announced and registered agents are kept in
/// `known-agents.json` in the data folder. The agents are the host's [`AgentDirectory`], so the
/// service search finds them. The texts of agents, in cards, statuses and answers, are untrusted:
/// they are defused, bounded, and labelled `agent:{name}`. Announcements, statuses and answers
/// over an unauthenticated channel are not believed.
///
/// Tasks do not go round: an agent through which a task came is not called again, a chain has at
/// most five agents, answers lead to at most eight further tasks one after the other, and a
/// question is asked three times at most in the same words. One process has the tasks of a name:
/// give further processes names of their own.
///
/// | setting (`A2A`) | default |
/// |---|---|
/// | `DefaultTimeoutMinutes`: time of a task whose caller names none | 5 |
/// | `DirectoryEntryTtl`: time after which a silent agent is forgotten | 1 day |
/// | `WellKnownAgentsPath`: file of the operator's agents | `well-known-agents.json` in the data folder, if there is one |
/// | `Agents`: list of sections with `Url`, `Name`, `Key` and `KeyHeader`, or of URLs | none |
/// | `OAuth` in such a section, in place of a key: `Issuer`, `ClientId`, `ClientSecret`, `Scopes` | none |
/// | `TaskTopic`, `CancelTopic`, `StatusTopic`, `CallerResultTopic`, `DiscoveryTopic` | the original's |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::a2a::A2aCaller;
///
/// // A host calls this for `.add(A2aCaller::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// A2aCaller::new().declare(&mut declarations)?;
/// let tools = declarations.merge().tools;
/// assert_eq!(tools[0].registration.name, "invoke_agent");
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct A2aCaller {
    timeout: Option<Duration>,
    well_known: Option<PathBuf>,
    agents: Vec<RemoteAgent>,
    policy: Option<EgressPolicy>,
    client: Option<EgressClient>,
    state: CallerState,
    settings: Option<CallerSettings>,
    tasks: PendingTasks,
}

/// The state that the tools share.
#[derive(Debug, Clone, Default)]
struct CallerState {
    timeout: Arc<OnceLock<Duration>>,
    directory: Arc<OnceLock<Arc<Directory>>>,
    /// Set when the host starts.
    caller: Arc<OnceLock<Arc<Caller>>>,
}

impl A2aCaller {
    /// Creates the tools with the limits of the settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of a task whose caller names none. Default 5 minutes, or the setting
    /// `A2A.DefaultTimeoutMinutes`.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the file of agents that the operator names, which must exist: a JSON array of cards.
    /// Default: the setting `A2A.WellKnownAgentsPath`, else the file `well-known-agents.json` in
    /// the data folder, if there is one.
    pub fn with_well_known(mut self, path: impl Into<PathBuf>) -> Self {
        self.well_known = Some(path.into());
        self
    }

    /// Names an agent that is reached over HTTP, by its URL. Call it once for each; the setting
    /// `A2A.Agents` names more. The agent may be in a private network: the operator names it.
    pub fn agent_at(mut self, agent: impl Into<RemoteAgent>) -> Self {
        self.agents.push(agent.into());
        self
    }

    /// Sets the policy of requests to agents with a URL. Default: the section `Egress` of the
    /// settings.
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.policy = Some(policy);
        self
    }
}

#[async_trait]
impl Subsystem for A2aCaller {
    fn name(&self) -> &str {
        "a2a"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let parts = declarations.parts();
        let config = parts.get::<Config>().unwrap_or_default();
        let agents = std::mem::take(&mut self.agents);
        let mut settings = CallerSettings::read(&config, self.well_known.take(), agents, parts.data_dir())?;
        let timeout = self.timeout.unwrap_or(settings.timeout);
        if timeout.is_zero() {
            return Err("the time of a task is longer than zero".into());
        }
        let configured = EgressPolicy::from_config(&config)?;
        let policy = self.policy.take().unwrap_or(configured);
        self.client = Some(http::client(policy, &settings.remote)?);
        let unnamed = settings.remote.iter().filter(|agent| agent.name.is_none());
        let named = (
            std::mem::take(&mut settings.well_known),
            unnamed.map(|agent| agent.url.clone()).collect(),
        );
        let file = KnownFile::open(parts.data_dir());
        let directory = Arc::new(Directory::new(parts.clock().clone(), settings.entry_ttl, named, file));
        let is_without_bus = !settings.remote.is_empty();
        self.tasks = PendingTasks::open(parts.data_dir())?;
        // A subsystem declares once.
        let _ = self.state.timeout.set(timeout);
        let _ = self.state.directory.set(directory.clone());
        self.settings = Some(settings);
        if !is_without_bus {
            declarations.require::<dyn Bus>(
                "give the host a bus with `.bus(…)` or `.shared_bus(…)`, or name agents by their URLs with `.agent_at(…)`",
            );
        }
        declarations.provide::<dyn AgentDirectory>(directory);
        let tools = tools(&self.state);
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        let cost = PartCost::on("a2a").with_switch("leave out `.add(A2aCaller)`");
        declarations.cost(
            cost.with_tools(names)
                .with_model_calls("one that tells each answer of an agent"),
        );
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let Self {
            state,
            settings,
            tasks,
            client,
            ..
        } = *self;
        let early = "a subsystem declares before it starts";
        let settings = settings.ok_or(early)?;
        let directory = state.directory.get().ok_or(early)?;
        let bus = parts.get::<dyn Bus>().map(|bus| {
            Arc::new(BusTransport {
                identity: parts.identity().clone(),
                bus,
                topics: settings.topics,
            })
        });
        let open: Vec<_> = tasks
            .open_tasks()
            .filter(|task| task.remote.is_some())
            .cloned()
            .collect();
        let named = (client.ok_or(early)?, settings.remote);
        let (caller, http) = caller(parts, directory, tasks, bus.clone(), named)?;
        let mut subscriptions = Vec::new();
        if let Some(way) = &bus {
            subscriptions.extend(listen::listen(&caller, way).await?);
            way.ask_for_cards().await;
        }
        http.start(open);
        // A subsystem starts once.
        let _ = state.caller.set(caller.clone());
        let (task, running) = RunningTask::new(|stop| clockwork::run(caller, stop));
        tokio::spawn(running);
        Ok(Box::new(RunningCaller {
            task,
            http,
            _subscriptions: subscriptions,
        }))
    }
}

/// Creates the running side, and its way to agents with a URL.
fn caller(
    parts: &Parts,
    directory: &Arc<Directory>,
    tasks: PendingTasks,
    bus: Option<Arc<BusTransport>>,
    named: (EgressClient, Vec<RemoteAgent>),
) -> Result<(Arc<Caller>, Arc<HttpTransport>), BoxError> {
    let turns = parts
        .get::<dyn TurnRunner>()
        .ok_or("the host does not run turns for its parts")?;
    let clock = parts.clock();
    // The way reports to the caller, which has the way.
    let mut http = None;
    let caller = Arc::new_cyclic(|caller: &Weak<Caller>| {
        let way = HttpTransport::new(named, clock.clone(), directory.clone(), caller.clone());
        Caller {
            identity: parts.identity().clone(),
            clock: clock.clone(),
            turns,
            memory: parts.get::<dyn WorkingMemory>(),
            files: parts.get::<dyn AgentFiles>(),
            directory: directory.clone(),
            chains: parts.get::<Chains>(),
            tasks: Mutex::new(tasks),
            changed: watch::Sender::new(()),
            bus: bus.map(|way| way as Arc<dyn Transport>),
            http: http.insert(Arc::new(way)).clone(),
        }
    });
    let http = http.ok_or("the way to agents with a URL is made with the caller")?;
    Ok((caller, http))
}

/// The handle of the running subsystem.
struct RunningCaller {
    task: RunningTask,
    http: Arc<HttpTransport>,
    _subscriptions: Vec<Subscription>,
}

#[async_trait]
impl Running for RunningCaller {
    async fn stop(&self) {
        self.http.stop().await;
        self.task.stop().await;
    }

    fn check(&self) -> Result<(), String> {
        self.task.check()
    }
}

impl CallerState {
    fn caller(&self) -> Result<&Arc<Caller>, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        self.caller.get().ok_or_else(starting)
    }

    fn directory(&self) -> Result<&Arc<Directory>, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        self.directory.get().ok_or_else(starting)
    }

    fn timeout(&self) -> Duration {
        let usual = || minutes_long(settings::TIMEOUT_MINUTES);
        self.timeout.get().copied().unwrap_or_else(usual)
    }
}

fn tools(state: &CallerState) -> [Tool; 7] {
    let group = ToolGroup::new(GROUP, "hand tasks to other agents").with_guide(include_str!("../guides/agents.md"));
    // The host's limit is for calls that do something themselves; `invoke_agent` may wait for
    // another agent.
    let longest = minutes_long(invoke::MAX_MINUTES + 1);
    let invoke = stateful_tool("invoke_agent", state.clone(), invoke::invoke)
        .idempotent()
        .own_output()
        .delegates()
        .trusted_effect("it reaches the agents that the operator let it call")
        .time_limit(longest);
    let list = stateful_tool("list_known_agents", state.clone(), agents::list)
        .pure()
        .own_output();
    let details = stateful_tool("get_agent_details", state.clone(), agents::details)
        .pure()
        .own_output();
    let register = stateful_tool("register_agent", state.clone(), agents::register);
    let unregister = stateful_tool("unregister_agent", state.clone(), agents::unregister);
    let [register, unregister] = [register, unregister].map(|tool| tool.idempotent().own_output().needs_endorsement());
    let tasks = stateful_tool("list_agent_tasks", state.clone(), cancel::list)
        .pure()
        .own_output();
    let cancel = stateful_tool("cancel_agent_task", state.clone(), cancel::cancel)
        .idempotent()
        .own_output();
    [invoke, list, details, register, unregister, tasks, cancel].map(|tool| tool.on_demand(&group).source("a2a"))
}
