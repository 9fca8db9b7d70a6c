//! The side of an agent that hands tasks to other agents: [`A2aCaller`].

mod agents;
mod cancel;
mod clockwork;
mod ends;
mod host;
mod invoke;
mod listen;
mod settings;
mod tasks;
mod tell;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::{Bus, MessageEnvelope, Subscription};
use rockbot_core::service::{AgentDirectory, KnownAgents};
use rockbot_core::store::WorkingMemory;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::tool::{Tool, ToolError, ToolGroup, stateful_tool};
use rockbot_core::turn::TurnRunner;
use tokio::sync::{Mutex, watch};

use super::GROUP;
use super::chains::Chains;
use super::directory::Directory;
use super::known_file::KnownFile;
use super::topics::Topics;
use super::wire::CardsWanted;
use host::Caller;
use settings::{CallerSettings, minutes_long};
use tasks::PendingTasks;

/// Tools that hand a model's tasks to other agents on the bus: `invoke_agent`,
/// `list_known_agents`, `get_agent_details`, `register_agent`, `unregister_agent`,
/// `list_agent_tasks`, `cancel_agent_task`.
///
/// `invoke_agent` returns at once: the answer (a result, an error, a question, or silence) comes
/// as one message of the same conversation, also after a restart of the host. Statuses are told
/// to the user without a model. A turn that is no conversation (a wisp, or the task of yet
/// another agent) waits in the call, and the result of the call is the answer.
///
/// An agent is known if it announces itself on the bus, if the operator's file
/// `well-known-agents.json` names it, or if the model registers it. An announced agent is
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
    /// Default: the setting `A2A.WellKnownAgentsPath`, else the file `well-known-agents.json` in the
    /// data folder, if there is one.
    pub fn with_well_known(mut self, path: impl Into<PathBuf>) -> Self {
        self.well_known = Some(path.into());
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
        let settings = CallerSettings::read(&config, self.well_known.take(), parts.data_dir())?;
        let timeout = self.timeout.unwrap_or(settings.timeout);
        if timeout.is_zero() {
            return Err("the time of a task is longer than zero".into());
        }
        let well_known = match &settings.well_known {
            Some(path) => KnownAgents::from_file(path)?.agents().to_vec(),
            None => Vec::new(),
        };
        let (file, seen) = KnownFile::open(parts.data_dir());
        let directory = Directory::new(parts.clock().clone(), settings.entry_ttl, well_known, file, seen);
        let directory = Arc::new(directory);
        self.tasks = PendingTasks::open(parts.data_dir())?;
        // A subsystem declares once.
        let _ = self.state.timeout.set(timeout);
        let _ = self.state.directory.set(directory.clone());
        self.settings = Some(settings);
        declarations
            .require::<dyn Bus>("give the host a bus with `.bus(…)` or `.shared_bus(…)`: agents are called over it");
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
        let settings = self.settings.ok_or("a subsystem declares before it starts")?;
        let directory = self
            .state
            .directory
            .get()
            .ok_or("a subsystem declares before it starts")?;
        let turns = parts
            .get::<dyn TurnRunner>()
            .ok_or("the host does not run turns for its parts")?;
        let caller = Arc::new(Caller {
            identity: parts.identity().clone(),
            clock: parts.clock().clone(),
            bus: parts.require::<dyn Bus>()?,
            turns,
            memory: parts.get::<dyn WorkingMemory>(),
            topics: settings.topics,
            directory: directory.clone(),
            chains: parts.get::<Chains>(),
            tasks: Mutex::new(self.tasks),
            changed: watch::Sender::new(()),
        });
        let subscriptions = listen::listen(&caller).await?;
        ask_for_cards(&caller).await;
        // A subsystem starts once.
        let _ = self.state.caller.set(caller.clone());
        let (task, running) = RunningTask::new(|stop| clockwork::run(caller, stop));
        tokio::spawn(running);
        Ok(Box::new(RunningCaller {
            task,
            _subscriptions: subscriptions,
        }))
    }
}

/// The handle of the running subsystem.
struct RunningCaller {
    task: RunningTask,
    _subscriptions: [Subscription; 3],
}

#[async_trait]
impl Running for RunningCaller {
    async fn stop(&self) {
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

/// Asks the agents on the bus for their cards. Agents that do not know the question announce
/// themselves at their interval.
async fn ask_for_cards(caller: &Caller) {
    let asked = async {
        let envelope = MessageEnvelope::of(&CardsWanted {})?.with_source(caller.identity.name().clone());
        caller.bus.publish(Topics::wanted(), Arc::new(envelope)).await
    };
    if let Err(error) = asked.await {
        tracing::warn!(%error, "agents could not be asked for their cards; they announce themselves at their interval");
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
