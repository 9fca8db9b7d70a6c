//! The agent host: everything together, in one process.

mod builder;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::tool::{Owner, RegistryError, Tool, ToolRegistry};
use rockbot_core::turn::{JournalError, ProgressSink, StoredRun, TurnJournal};
use rockbot_core::{ToolName, TurnId};

pub use builder::{AgentHostBuilder, BuildError};

use crate::agent::Agent;
use crate::engine::{Resumed, TurnError, TurnService};

/// How long [`AgentHost::run_until`] lets running turns reach a journal point.
const DRAIN: Duration = Duration::from_secs(10);

/// An agent and everything that it needs.
///
/// A host lives in whatever tokio runtime builds and uses it; two hosts can live in one process.
#[derive(Debug)]
pub struct AgentHost {
    agent: Agent,
    turns: TurnService,
    registry: Arc<dyn ToolRegistry>,
    /// Whose the tools are that this host was given.
    tool_owner: Owner,
    journal: Arc<dyn TurnJournal>,
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
        &self.turns
    }

    /// Goes on with the turns that the end of an earlier process interrupted, and waits on with those that wait for
    /// a person.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    pub async fn resume(&self) -> Result<Resumed, TurnError> {
        self.turns.engine().resume_all(|_| ProgressSink::none()).await
    }

    /// What the journal tells of a turn.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    pub async fn trace(&self, turn: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        self.journal.read(turn).await
    }

    /// Resumes interrupted turns, runs until `stop` resolves, and shuts down.
    ///
    /// # Errors
    ///
    /// Fails when interrupted turns cannot be read.
    pub async fn run_until(&self, stop: impl Future) -> Result<(), TurnError> {
        self.resume().await?;
        stop.await;
        self.shutdown(DRAIN).await;
        Ok(())
    }

    /// Stops: takes no more messages, and gives running turns up to `deadline` to reach a journal point, from
    /// where the next process goes on with them. Calling it again does no harm.
    pub async fn shutdown(&self, deadline: Duration) {
        let engine = self.turns.engine();
        engine.driver.halt.cancel();
        engine.tasks.close();
        let _ = tokio::time::timeout(deadline, engine.tasks.wait()).await;
        engine.give_up();
    }
}

impl Drop for AgentHost {
    fn drop(&mut self) {
        // Every task belongs to the host and ends with it.
        self.turns.engine().give_up();
    }
}
