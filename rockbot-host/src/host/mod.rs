//! The agent host: everything together, in one process.

mod builder;
mod lifecycle;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::Ledger;
use rockbot_core::subsystem::Parts;
use rockbot_core::tool::{Owner, RegistryError, Tool, ToolRegistry};
use rockbot_core::turn::{JournalError, ProgressSink, StoredRun, TurnJournal};
use rockbot_core::{ToolName, TurnId};
use tokio::time::Instant;

pub use builder::{AgentHostBuilder, BuildError};
pub use lifecycle::{HostState, NotReady, StartError};

use crate::agent::Agent;
use crate::engine::{Resumed, TurnError, TurnService};
use crate::profile::{AgentProfile, ProfileError, SystemPrompt};
use crate::routing::RoutingLog;
use lifecycle::Lifecycle;

/// How long [`AgentHost::run_until`] lets running turns reach a journal point.
const DRAIN: Duration = Duration::from_secs(10);

/// An agent and everything that it needs.
///
/// A host lives in whatever tokio runtime builds and uses it; two hosts can live in one process.
#[derive(Debug)]
pub struct AgentHost {
    agent: Agent,
    registry: Arc<dyn ToolRegistry>,
    /// Whose the tools are that this host was given.
    tool_owner: Owner,
    journal: Arc<dyn TurnJournal>,
    prompt: Arc<SystemPrompt>,
    lifecycle: Lifecycle,
}

impl AgentHost {
    /// Begins a host whose agent is called `name`.
    pub fn builder(name: &str) -> AgentHostBuilder {
        AgentHostBuilder::new(name)
    }

    /// Begins a host that keeps nothing on disk: its turns and conversations end with the process.
    pub fn in_memory() -> AgentHostBuilder {
        AgentHostBuilder::new("agent")
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Adds a tool while the host runs. The model sees it from its next call on, also within a turn.
    ///
    /// # Errors
    ///
    /// Fails when the name is taken or not valid, the description is empty, or the schema cannot be used.
    pub fn add_tool(&self, tool: Tool) -> Result<(), RegistryError> {
        self.registry.register(&self.tool_owner, tool)
    }

    /// Removes a tool that was given to this host, by its builder or by [`AgentHost::add_tool`]. Returns whether
    /// there was one.
    ///
    /// Calls that run go on to their end; further ones are answered that there is no such tool. A running turn shows
    /// it to the model until its end, so that the provider's prompt cache stays valid; later turns do not.
    ///
    /// # Errors
    ///
    /// Fails when the tool belongs to somebody else, who registered it in a registry of their own.
    pub fn remove_tool(&self, name: &ToolName) -> Result<bool, RegistryError> {
        self.registry.unregister(&self.tool_owner, name)
    }

    /// The tools.
    pub fn tools(&self) -> &Arc<dyn ToolRegistry> {
        &self.registry
    }

    /// Turns as a tower service, for those who want to put it behind a server of their own.
    pub fn turns(&self) -> &TurnService {
        self.lifecycle.turns()
    }

    /// Goes on with the turns that the end of an earlier process interrupted, and waits on with those that wait for
    /// a person.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    pub async fn resume(&self) -> Result<Resumed, TurnError> {
        self.turns().engine().resume_all(|_| ProgressSink::none()).await
    }

    /// What the journal tells of a turn.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    pub async fn trace(&self, turn: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        self.journal.read(turn).await
    }

    /// Reads the files of the agent's profile again; returns whether its instructions have changed. Turns that run
    /// keep the old ones.
    ///
    /// # Errors
    ///
    /// Fails when the files cannot be used; the agent then goes on with what it has.
    pub fn reload_profile(&self) -> Result<bool, ProfileError> {
        self.prompt.reload()
    }

    /// The agent's profile, if it has one.
    pub fn profile(&self) -> Option<Arc<AgentProfile>> {
        self.prompt.profile()
    }

    /// What the answers that turns of this process got cost, in tokens and money: in all, and by tier, session and turn.
    pub fn spending(&self) -> &Ledger {
        &self.turns().engine().ledger
    }

    /// The newest decisions about tiers and what came of them, if somebody selects them.
    pub fn routing_log(&self) -> Option<&RoutingLog> {
        let router = self.turns().engine().router.as_ref();
        router.map(|router| router.log())
    }

    /// What the host has: its stores, its bus, everything that its subsystems gave.
    pub fn parts(&self) -> &Parts {
        self.lifecycle.parts()
    }

    /// Starts the subsystems in the order of their stages, goes on with interrupted turns, and then begins to take
    /// messages. A host that is only asked through its [`Agent`] need not be started, but then calls
    /// [`AgentHost::resume`] itself to go on with interrupted turns.
    ///
    /// # Errors
    ///
    /// Fails when something cannot start; what had started is stopped again.
    pub async fn start(&self) -> Result<Resumed, StartError> {
        self.lifecycle.start().await
    }

    /// Starts, runs until `stop` resolves, and shuts down.
    ///
    /// # Errors
    ///
    /// Fails as [`AgentHost::start`] does.
    pub async fn run_until(&self, stop: impl Future) -> Result<(), StartError> {
        self.start().await?;
        stop.await;
        self.shutdown(DRAIN).await;
        Ok(())
    }

    /// Stops within `deadline`: takes no more messages, lets running turns reach a journal point, from where the next
    /// process goes on with them, and lets subsystems write down what they hold. What has not ended by then is
    /// cancelled; work gets three quarters of the time, then each subsystem half of what is left.
    /// Calling it again does no harm.
    pub async fn shutdown(&self, deadline: Duration) {
        self.lifecycle.stop(Instant::now() + deadline).await;
    }

    /// Where the host is in its life. A process is alive as long as this is not [`HostState::Stopped`].
    pub fn state(&self) -> HostState {
        self.lifecycle.state()
    }

    /// Whether everything works: it has started, every subsystem can do its work, and messages are taken.
    ///
    /// # Errors
    ///
    /// Says what is wrong.
    pub fn readiness(&self) -> Result<(), NotReady> {
        self.lifecycle.check()
    }
}

impl Drop for AgentHost {
    fn drop(&mut self) {
        // Every task belongs to the host and ends with it.
        self.turns().engine().abort_all();
    }
}
