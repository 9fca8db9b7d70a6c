//! A task's turn until its end: its state is noted, and the operator is asked about calls that need
//! an approval.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::support::one_line;
use rockbot_core::trust::Label;
use rockbot_core::turn::{Announcement, ApprovalRequest, TurnError, TurnEvents, TurnProgress};
use rockbot_core::{Digest, Principal, ToolName, TurnId};
use tokio::time::sleep;

use super::operations::Operations;
use super::tasks::{TaskRecord, state_of};
use crate::a2a_wire::TaskState;

/// Pause before another look for a turn that is not resumed yet: the first pause, and the
/// maximum.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(60);

/// Session of the questions to the operator.
const SESSION: &str = "a2a";

/// Maximum length of arguments that the operator is shown, in characters.
const MAX_ARGUMENTS: usize = 1_000;

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
                TurnProgress::ApprovalNeeded(request) => {
                    is_parked = true;
                    self.note(TaskState::AuthRequired);
                    self.ask_operator(request).await;
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

    /// Asks the operator by an announcement. The announcement waits until a program takes it.
    async fn ask_operator(&self, mut request: ApprovalRequest) {
        request.asked_by.insert(0, ToolName::from(self.principal.as_str()));
        let arguments: String = one_line(&request.arguments).chars().take(MAX_ARGUMENTS).collect();
        let text = format!(
            "Another agent, `{}`, asked for work, and the call `{}` with {arguments} needs an approval.",
            self.principal, request.tool
        );
        let id = format!("a2a-{}-{}", self.turn, Digest::of([request.call.as_str()]).short());
        let announcement = Announcement::new(self.operations.operator.clone(), SESSION, text)
            .with_turn(self.turn.clone())
            .with_approval(request)
            .with_label(Label::untrusted(self.principal.as_str()));
        if let Err(error) = self.operations.turns.announce(&id, announcement).await {
            tracing::error!(turn = %self.turn, %error, "the operator is not asked about a call of an A2A task; it waits all the same");
        }
    }
}
