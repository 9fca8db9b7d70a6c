//! A task's turn until its end: its state is noted.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::turn::{TurnError, TurnEvents, TurnProgress};
use rockbot_core::{Principal, TurnId};
use tokio::time::sleep;

use super::operations::Operations;
use super::tasks::{TaskRecord, state_of};
use crate::a2a_wire::TaskState;

/// Pause before another look for a turn that is not resumed yet: the first pause, and the
/// maximum.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(60);

/// The watch over one turn of a task.
#[derive(Debug)]
pub(super) struct Watch {
    operations: Arc<Operations>,
    task: String,
    principal: Principal,
    turn: TurnId,
}

impl Watch {
    pub(super) fn new(operations: &Arc<Operations>, record: &TaskRecord, turn: TurnId) -> Self {
        Self {
            operations: operations.clone(),
            task: record.id.clone(),
            principal: record.principal.clone(),
            turn,
        }
    }

    /// Watches in a task of the host, until the turn or the host ends.
    pub(super) fn spawn(self) {
        let running = self.operations.running.clone();
        let stop = self.operations.stop.clone();
        running.spawn(async move { stop.run_until_cancelled(self.run()).await });
    }

    async fn run(self) {
        let mut pause = FIRST_LOOK;
        loop {
            match self.operations.turns.events(&self.turn, 0).await {
                Ok(events) => return self.read(events).await,
                // The host resumes its turns after its parts have started.
                Err(TurnError::Interrupted(_)) => sleep(pause).await,
                Err(TurnError::NotFound(_)) => return self.operations.tasks.forget(&self.task),
                Err(_) => return,
            }
            pause = (pause * 2).min(LOOK);
        }
    }

    async fn read(&self, mut events: TurnEvents) {
        let mut is_parked = false;
        while let Some(Ok(progress)) = events.next().await {
            match progress {
                TurnProgress::Final(outcome) => {
                    self.note(state_of(&outcome));
                    return self.operations.forget_chain(&self.principal, &self.task);
                }
                // The host asks the operator, who is the approver of the turn.
                TurnProgress::ApprovalNeeded(_) => {
                    is_parked = true;
                    self.note(TaskState::AuthRequired);
                }
                _ if is_parked => {
                    is_parked = false;
                    self.note(TaskState::Working);
                }
                _ => {}
            }
        }
    }

    fn note(&self, state: TaskState) {
        self.operations
            .tasks
            .note(&self.task, state, self.operations.clock.now());
        self.operations.notify(&self.task);
    }
}
