//! The base that all requests share: the parts of the host, the tasks, and a task as clients see
//! it. The operations are in `calls`, `accept` and `list`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use rockbot_core::context::CancellationToken;
use rockbot_core::store::MediaStore;
use rockbot_core::tool::{ToolRegistry, ToolSelector};
use rockbot_core::turn::{TurnOutcome, TurnRunner};
use rockbot_core::{Clock, Principal, TurnId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::card::Card;
use super::content::artifact_of;
use super::tasks::{SessionTurns, Standing, TaskRecord, TaskTable, words_of};
use crate::a2a_callers::CallerTrust;
use crate::a2a_callers::chains::Chains;
use crate::a2a_wire::{A2aError, Artifact, ErrorKind, Message, Task, TaskState, TaskStatus};
use crate::egress::EgressClient;

/// Maximum number of requests that wait for the end of a task or stream it, of all clients.
const MAX_WAITING: usize = 256;

/// The operations, and the parts of the host that they need.
#[derive(Debug)]
pub(super) struct Operations {
    pub(super) turns: Arc<dyn TurnRunner>,
    pub(super) media: Option<Arc<dyn MediaStore>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: TaskTable,
    pub(super) card: Card,
    /// Name of this agent in chains of agents.
    pub(super) name: Arc<str>,
    pub(super) chains: Arc<Chains>,
    /// The tools of callers that name none of their own.
    pub(super) tools: Vec<ToolSelector>,
    /// The trust in callers that name none of their own.
    pub(super) trust: CallerTrust,
    /// The tools of the host.
    pub(super) registry: Arc<dyn ToolRegistry>,
    /// Principal that is asked about tool calls that need an approval.
    pub(super) operator: Principal,
    pub(super) waiting: Arc<Semaphore>,
    /// The client of push notifications.
    pub(super) egress: EgressClient,
    /// The tasks whose changes are told now.
    pub(super) notifying: Mutex<HashSet<String>>,
    pub(super) stop: CancellationToken,
    pub(super) running: TaskTracker,
}

impl Operations {
    pub(super) fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_WAITING))
    }

    /// Returns the permit of a request that waits or streams, if one is free.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, A2aError> {
        let permit = self.waiting.clone().try_acquire_owned();
        permit.map_err(|_| A2aError::new(ErrorKind::Busy, "too many requests wait for tasks: try again later"))
    }

    /// Forgets the chain of a task that has ended, unless another task of its session goes on.
    pub(super) fn forget_chain(&self, principal: &Principal, task: &str) {
        let Ok(ended) = self.tasks.find(principal, task) else {
            return;
        };
        let is_open = |record: &TaskRecord| {
            record.principal == *principal && record.context == ended.context && !record.state.is_terminal()
        };
        if self.tasks.all(is_open).is_empty() {
            self.chains.remove(principal.clone(), ended.context.as_str().into());
        }
    }

    /// Returns the standing of a task, and notes it.
    pub(super) async fn standing(&self, record: &TaskRecord) -> Result<Standing, A2aError> {
        // A task that was cancelled while it waited for input has no cancelled turn.
        if record.state == TaskState::Canceled {
            return Ok(Standing::open(TaskState::Canceled));
        }
        let standing = SessionTurns::of(&*self.turns, record).standing().await;
        match &standing {
            Ok(standing) => self.tasks.note(&record.id, standing.state, self.clock.now()),
            Err(error) if error.kind == ErrorKind::TaskNotFound => self.tasks.forget(&record.id),
            Err(_) => {}
        }
        standing
    }

    /// Returns the state of a task, or `None` if the task is gone. The state of a task that has
    /// ended is known without its turns.
    pub(super) async fn state(&self, record: &TaskRecord) -> Option<TaskState> {
        if record.state.is_terminal() {
            return Some(record.state);
        }
        self.standing(record).await.ok().map(|standing| standing.state)
    }

    /// Returns a task as clients see it.
    pub(super) async fn view(
        &self,
        record: &TaskRecord,
        standing: Standing,
        history: Option<i32>,
        with_artifacts: bool,
    ) -> Result<Task, A2aError> {
        let artifacts = match (&standing.outcome, standing.state) {
            _ if !with_artifacts => None,
            (Some(outcome), TaskState::Completed) => Some(vec![self.artifact(record, outcome).await]),
            _ => Some(Vec::new()),
        };
        Ok(Task {
            id: record.id.clone(),
            context_id: record.context.clone(),
            status: self.status(record, &standing),
            artifacts,
            history: history_of(record, history)?,
        })
    }

    /// Returns the status of a task, with the agent's words about it.
    pub(super) fn status(&self, record: &TaskRecord, standing: &Standing) -> TaskStatus {
        let known = self.tasks.find(&record.principal, &record.id);
        TaskStatus {
            state: standing.state,
            message: words_of(standing).map(|words| {
                let turn = record.last_turn().map_or("", TurnId::as_str);
                Message::of_agent(format!("{turn}-status"), &record.context, &record.id, words)
            }),
            timestamp: known.map_or(record.updated, |record| record.updated),
        }
    }

    /// Returns the artifact of a task that is completed.
    pub(super) async fn artifact(&self, record: &TaskRecord, outcome: &TurnOutcome) -> Artifact {
        let url = |index: usize| format!("{}files/{}/{index}", self.card.url(), record.id);
        artifact_of(outcome, &record.principal, self.media.as_deref(), url).await
    }
}

/// Returns the last messages of a task.
fn history_of(record: &TaskRecord, length: Option<i32>) -> Result<Vec<Message>, A2aError> {
    let length = match length {
        None => usize::MAX,
        Some(length) => usize::try_from(length).map_err(|_| A2aError::params("`historyLength` is at least 0"))?,
    };
    let kept = record.turns.iter().filter_map(|turn| {
        let mut message = turn.message.clone()?;
        message.task_id = Some(record.id.clone());
        message.context_id = Some(record.context.clone());
        Some(message)
    });
    let mut kept: Vec<_> = kept.collect();
    Ok(kept.split_off(kept.len().saturating_sub(length)))
}
