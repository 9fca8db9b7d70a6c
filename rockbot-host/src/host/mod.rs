//! The agent host: an agent and everything that it needs, in one process.
//!
//! `builder` assembles the host, `lifecycle` starts and stops it; this file is its surface.

mod builder;
mod costs;
mod lifecycle;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::Ledger;
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::subsystem::{PartCost, Parts};
use rockbot_core::support::deadline_after;
use rockbot_core::tool::{Owner, RegistryError, Tool, ToolRegistry};
use rockbot_core::turn::{JournalError, TurnJournal};
use rockbot_core::{ToolName, TurnId};
use tokio::time::Instant;

pub use builder::{AgentHostBuilder, BuildError, MessageOptions, Stores, TurnPolicies};
pub use lifecycle::{HostState, NotReady, StartError};

use crate::agent::Agent;
use crate::engine::{Resumed, TurnError, TurnService};
use crate::profile::{AgentProfile, ProfileError, SystemPrompt};
use crate::routing::RoutingLog;
use crate::turn::TurnTrace;
use lifecycle::Lifecycle;

/// Deadline of the shutdown in [`AgentHost::run_until`].
const DRAIN: Duration = Duration::from_secs(10);

/// An agent and everything that it needs: its model, tools, stores, bus and background work.
///
/// A host runs on the tokio runtime that starts or asks it. Several hosts can run in one process.
/// Dropping it ends all of its tasks; [`shutdown`](Self::shutdown) lets running turns end first.
/// The data folder stays locked while a clone of the [`Agent`] or another part of the host lives:
/// drop them before another host opens it. A host that was started and is dropped without a
/// shutdown frees its folder once the runtime has dropped its tasks.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use std::time::Duration;
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::{AgentHost, HostState};
///
/// let host = AgentHost::builder("clerk").chat(ScriptedModel::new().says("Hello.")).build()?;
/// host.start().await?;
/// assert_eq!(host.agent().ask("session", "Hi!").await?.text, "Hello.");
///
/// host.shutdown(Duration::from_secs(10)).await;
/// assert_eq!(host.state(), HostState::Stopped);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AgentHost {
    agent: Agent,
    registry: Arc<dyn ToolRegistry>,
    /// The owner of this host's tools in the registry.
    tool_owner: Owner,
    journal: Arc<dyn TurnJournal>,
    prompt: Arc<SystemPrompt>,
    /// The costs that subsystems stated.
    declared_costs: Vec<PartCost>,
    lifecycle: Lifecycle,
}

impl AgentHost {
    /// Creates a builder of a host whose agent is called `name`.
    pub fn builder(name: &str) -> AgentHostBuilder {
        AgentHostBuilder::new(name)
    }

    /// Creates a builder of a host for tests and experiments, whose agent is called `agent`.
    ///
    /// It is the same as [`AgentHost::builder`]: without a [data folder](AgentHostBuilder::data_dir)
    /// turns and conversations are kept in memory, and end with the process.
    pub fn in_memory() -> AgentHostBuilder {
        AgentHostBuilder::new("agent")
    }

    /// Returns the agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Returns the agent of this name: the host's own, or one [beside it](AgentHostBuilder::agent).
    /// Its sessions are its own: no conversation of one agent is seen by another.
    pub fn agent_called(&self, name: &str) -> Option<Agent> {
        if name == self.lifecycle.parts().identity().name().as_ref() {
            return Some(self.agent.clone());
        }
        let agents = &self.turns().engine().agents;
        agents.has(name).then(|| self.agent.beside(name))
    }

    /// Adds a tool while the host runs. The model sees it from its next request on, also within a turn.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is taken or invalid, the description is empty, or the schema
    /// cannot be used.
    pub fn add_tool(&self, tool: impl Into<Tool>) -> Result<(), RegistryError> {
        self.registry.register(&self.tool_owner, tool.into())
    }

    /// Removes a tool that was added by the builder or by [`AgentHost::add_tool`]. Returns `true` if
    /// there was one.
    ///
    /// Running calls continue to their end; further calls get an error result. A running turn shows
    /// the tool to the model until its end, so that the provider's prompt cache stays valid; later
    /// turns do not.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool has another owner, which registered it in a shared registry.
    pub fn remove_tool(&self, name: &ToolName) -> Result<bool, RegistryError> {
        self.registry.unregister(&self.tool_owner, name)
    }

    /// Returns the registry of tools.
    pub fn tools(&self) -> &Arc<dyn ToolRegistry> {
        &self.registry
    }

    /// Returns the turns as a tower service, to put behind a server of your own.
    pub fn turns(&self) -> &TurnService {
        self.lifecycle.turns()
    }

    /// Resumes the turns that the end of an earlier process interrupted, and the turns that wait
    /// for a user's decision.
    ///
    /// [`AgentHost::start`] does so, too; a host that is not started calls this itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    pub async fn resume(&self) -> Result<Resumed, TurnError> {
        self.turns().engine().resume_all(None).await
    }

    /// Returns the trace of a turn from the journal; `None` when it has no records of it, or none any
    /// more.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read, or a newer version of the program wrote the
    /// turn's records.
    pub async fn trace(&self, turn: &TurnId) -> Result<Option<TurnTrace>, JournalError> {
        let run = self.journal.read(turn).await?;
        // A journal keeps only the outcome of a finished run, and not always the accepted request.
        let kept = run.filter(|run| run.accepted.body.to_json().is_ok_and(|body| body.get() != "null"));
        let trace = kept.map(TurnTrace::from_run).transpose();
        trace.map_err(|error| {
            let context = format!("the records of turn {turn} cannot be read");
            StoreError::new(StoreErrorKind::Damaged, context)
                .with_cause(error)
                .into()
        })
    }

    /// Reads the files of the agent's profile again. Returns `true` if the instructions have changed.
    ///
    /// Later turns use the new instructions; running turns keep the old instructions. Call it after
    /// an edit of the files; nothing watches them. A host with fixed instructions returns `false`.
    ///
    /// # Errors
    ///
    /// Returns an error if the files cannot be used; the agent then keeps its instructions.
    pub fn reload_profile(&self) -> Result<bool, ProfileError> {
        self.prompt.reload()
    }

    /// Returns the agent's profile; `None` for a host with fixed instructions.
    pub fn profile(&self) -> Option<Arc<AgentProfile>> {
        self.prompt.profile()
    }

    /// Returns the ledger of the costs of this process's turns, in tokens and money: in total, and
    /// by tier, session and turn.
    pub fn spending(&self) -> &Ledger {
        &self.turns().engine().ledger
    }

    /// Returns the newest decisions about tiers and their outcomes; `None` without a
    /// [selector](AgentHostBuilder::tier_selector).
    pub fn routing_log(&self) -> Option<&RoutingLog> {
        let router = self.turns().engine().router.as_ref();
        router.map(|router| router.log())
    }

    /// Returns the shared parts of the host: its stores, its bus, and everything that its subsystems
    /// provide.
    pub fn parts(&self) -> &Parts {
        self.lifecycle.parts()
    }

    /// Starts the subsystems in the order of their stages, resumes interrupted turns, and subscribes
    /// to messages last.
    ///
    /// A host that is only asked through its [`Agent`] need not be started, but must then call
    /// [`AgentHost::resume`] itself to resume interrupted turns.
    ///
    /// # Errors
    ///
    /// Returns an error if a part cannot start; the parts that had started are stopped again.
    pub async fn start(&self) -> Result<Resumed, StartError> {
        self.lifecycle.start().await
    }

    /// Starts the host, waits until `stop` resolves, and shuts down within 10 seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if [`AgentHost::start`] does.
    pub async fn run_until(&self, stop: impl Future) -> Result<(), StartError> {
        self.start().await?;
        stop.await;
        self.shutdown(DRAIN).await;
        Ok(())
    }

    /// Stops the host within `deadline`: it unsubscribes, lets running turns end with their
    /// answers, and lets subsystems flush. No other turn begins: a message that waits for its
    /// session is left to the next process.
    ///
    /// Handlers and turns get three quarters of the time. Turns that still run when a quarter of
    /// that time, or the last five seconds of it, are left come to a journal point, and the next
    /// process resumes them there. Handlers that still run at the end of the time are cancelled.
    /// Each subsystem gets half of the rest. Dropping the returned future and then the host ends
    /// everything at once.
    ///
    /// Calling it again waits for the first call, or goes on where the first call was dropped. A
    /// registry that the host shares keeps none of its tools.
    pub async fn shutdown(&self, deadline: Duration) {
        self.lifecycle.stop(deadline_after(Instant::now(), deadline)).await;
        self.withdraw_tools();
    }

    /// Returns the state of the host. For a liveness probe, a process is alive until this is
    /// [`HostState::Stopped`].
    pub fn state(&self) -> HostState {
        self.lifecycle.state()
    }

    /// Checks that the host has started, every subsystem is healthy, and every subscription is
    /// active: a readiness probe.
    ///
    /// # Errors
    ///
    /// Returns an error with every reason if the host is not ready.
    pub fn readiness(&self) -> Result<(), NotReady> {
        self.lifecycle.check()
    }
}

impl AgentHost {
    /// Removes the tools of this host from the registry, which other hosts may share.
    fn withdraw_tools(&self) {
        if let Err(error) = self.registry.replace_source(&self.tool_owner, Vec::new()) {
            tracing::warn!(%error, "the tools of a host that has ended stay in its registry");
        }
    }
}

impl Drop for AgentHost {
    fn drop(&mut self) {
        self.withdraw_tools();
        // Every task belongs to the host: without it a turn would run on with no way to stop it.
        self.turns().engine().abort_all();
    }
}
