//! The running side of a caller: its tasks, and the parts of the host that it needs.

use std::sync::Arc;

use rockbot_core::store::WorkingMemory;
use rockbot_core::tool::ToolError;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{AgentIdentity, Clock};
use tokio::sync::{Mutex, watch};

use super::super::directory::Directory;
use super::tasks::{PendingTask, PendingTasks};
use super::transport::Transport;
use crate::a2a_callers::chains::Chains;
use crate::agent_files::AgentFiles;

/// The parts of a caller that has started.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) identity: AgentIdentity,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) turns: Arc<dyn TurnRunner>,
    pub(super) memory: Option<Arc<dyn WorkingMemory>>,
    /// The agent's own files; `None` without file tools.
    pub(super) files: Option<Arc<dyn AgentFiles>>,
    pub(super) directory: Arc<Directory>,
    /// The chains of the tasks that this host does for other agents; `None` without a receiver.
    pub(super) chains: Option<Arc<Chains>>,
    pub(super) tasks: Mutex<PendingTasks>,
    /// Notifies of each change of the tasks.
    pub(super) changed: watch::Sender<()>,
    /// The way to agents on the bus; `None` if the host has no bus.
    pub(super) bus: Option<Arc<dyn Transport>>,
    /// The way to agents with a URL.
    pub(super) http: Arc<dyn Transport>,
}

impl Caller {
    /// Returns the way to an agent: HTTP if it has a URL, else the bus.
    pub(super) fn way(&self, has_url: bool) -> Result<&Arc<dyn Transport>, ToolError> {
        let no_bus = || ToolError::execution_failed("the agent is reached over a bus, and this host has none");
        if has_url {
            Ok(&self.http)
        } else {
            self.bus.as_ref().ok_or_else(no_bus)
        }
    }

    /// Asks an agent to stop a task whose end is no longer awaited. A failure is logged.
    pub(super) async fn call_off(&self, task: &PendingTask) {
        if let Ok(way) = self.way(task.remote.is_some()) {
            way.call_off(task).await;
        }
    }

    /// Gives up a task, and asks its agent to stop. The user is told nothing of the task.
    pub(super) async fn drop_task(&self, task: &PendingTask) {
        self.tasks.lock().await.remove(&task.id);
        self.changed.send_replace(());
        self.call_off(task).await;
    }
}
