//! The operations of the protocol on one task. The bindings only read and write them.

use std::sync::Arc;

use rockbot_core::turn::TurnProgress;
use tokio::sync::OwnedSemaphorePermit;

use super::accept::Accepted;
use super::caller::A2aCaller;
use super::operations::Operations;
use super::stream::TaskStream;
use super::tasks::{SessionTurns, Standing, refused};
use crate::a2a_wire::{A2aError, ErrorKind, SendMessage, Task, TaskQuery, TaskState};

impl Operations {
    /// Answers `SendMessage`, which is of version 0.3 with `true`, with the task: once the task has
    /// ended or waits for an answer or an approval, or at once if the client asks for that.
    pub(super) async fn send(
        self: &Arc<Self>,
        caller: &A2aCaller,
        request: (SendMessage, bool),
    ) -> Result<Task, A2aError> {
        let is_immediate = request
            .0
            .configuration
            .as_ref()
            .and_then(|wanted| wanted.return_immediately);
        let permit = match is_immediate {
            Some(true) => None,
            _ => Some(self.permit()?),
        };
        let accepted = self.accept(caller, request).await?;
        let standing = match permit {
            Some(_) => self.settled(&accepted).await?,
            None => self.standing(&accepted.record).await?,
        };
        self.view(&accepted.record, standing, accepted.history, true).await
    }

    /// Answers `SendStreamingMessage`.
    pub(super) async fn send_stream(
        self: &Arc<Self>,
        caller: &A2aCaller,
        request: (SendMessage, bool),
    ) -> Result<TaskStream, A2aError> {
        let permit = self.permit()?;
        let accepted = self.accept(caller, request).await?;
        self.stream(accepted, permit).await
    }

    /// Answers `SubscribeToTask`.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        caller: &A2aCaller,
        query: TaskQuery,
    ) -> Result<TaskStream, A2aError> {
        let permit = self.permit()?;
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        if standing.state.is_terminal() {
            return Err(A2aError::new(
                ErrorKind::Unsupported,
                "the task has ended: read it with `GetTask`",
            ));
        }
        let turn = record.last_turn().cloned().ok_or_else(A2aError::no_task)?;
        let history = query.history_length;
        self.stream(Accepted { record, turn, history }, permit).await
    }

    async fn stream(
        self: &Arc<Self>,
        accepted: Accepted,
        permit: OwnedSemaphorePermit,
    ) -> Result<TaskStream, A2aError> {
        let events = self
            .turns
            .events(&accepted.turn, 0)
            .await
            .map_err(|error| refused(&error))?;
        let standing = self.standing(&accepted.record).await?;
        // The events tell the end with the answer, also of a turn that has ended by now.
        let standing = if standing.state.is_terminal() {
            Standing::open(TaskState::Working)
        } else {
            standing
        };
        let first = self.view(&accepted.record, standing, accepted.history, false).await?;
        Ok(TaskStream::new(self.clone(), accepted.record, first, events, permit))
    }

    /// Answers `GetTask`.
    pub(super) async fn get(&self, caller: &A2aCaller, query: &TaskQuery) -> Result<Task, A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        self.view(&record, standing, query.history_length, true).await
    }

    /// Answers `CancelTask`: once it returns, the cancellation of each turn that had not ended is
    /// in the journal.
    pub(super) async fn cancel(self: &Arc<Self>, caller: &A2aCaller, query: &TaskQuery) -> Result<Task, A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        match standing.state {
            state if state.is_terminal() => {
                return Err(A2aError::new(ErrorKind::TaskNotCancelable, "the task has ended"));
            }
            // No turn works on the task.
            TaskState::InputRequired => {
                let record = self.tasks.change(&record.id, |record| {
                    (record.state, record.updated) = (TaskState::Canceled, self.clock.now());
                })?;
                self.notify(&record.id);
                return self
                    .view(&record, Standing::open(TaskState::Canceled), query.history_length, true)
                    .await;
            }
            _ => {}
        }
        let open: Vec<_> = SessionTurns::of(&*self.turns, &record)
            .open()
            .into_iter()
            .map(|(turn, _)| turn)
            .collect();
        for turn in open {
            self.turns.cancel(turn).await.map_err(|error| refused(&error))?;
            // The turn ends soon, with an outcome: the answer is the task as it is then.
            let _ = self.turns.outcome(turn).await;
        }
        let standing = self.standing(&record).await?;
        self.view(&record, standing, query.history_length, true).await
    }

    /// Waits until the turn has ended or waits for an answer or an approval. Dropping the future
    /// leaves the turn alone.
    async fn settled(&self, accepted: &Accepted) -> Result<Standing, A2aError> {
        let events = self.turns.events(&accepted.turn, 0).await;
        let mut events = events.map_err(|error| refused(&error))?;
        let waiting = async {
            while let Some(event) = events.next().await {
                match event.map_err(|error| refused(&error))? {
                    TurnProgress::Final(outcome) => return Ok(Some(Standing::of_outcome(outcome))),
                    TurnProgress::ApprovalNeeded(_) => {
                        let standing = self.standing(&accepted.record).await?;
                        if standing.state.is_settled() {
                            return Ok(Some(standing));
                        }
                    }
                    _ => {}
                }
            }
            Ok(None)
        };
        let stopping = || A2aError::new(ErrorKind::Busy, "the agent stops: ask for the task when it runs again");
        match self.stop.run_until_cancelled(waiting).await {
            Some(Ok(Some(standing))) => Ok(standing),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => Err(stopping()),
        }
    }
}
