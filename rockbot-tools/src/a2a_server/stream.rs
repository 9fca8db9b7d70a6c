//! The stream of a task: first the task as it is, then each change, until the task ends or waits
//! for its caller.

use std::collections::VecDeque;
use std::sync::Arc;

use rockbot_core::turn::{TurnEvents, TurnOutcome, TurnProgress};
use tokio::sync::OwnedSemaphorePermit;

use super::caller::ASK_CALLER;
use super::content::ANSWER;
use super::operations::Operations;
use super::tasks::{Standing, TaskRecord};
use crate::a2a_wire::{Artifact, ArtifactUpdate, Part, StatusUpdate, StreamItem, Task, TaskState};

/// The stream. Dropping it leaves the task alone; another stream tells the same from the
/// beginning of the turn on.
#[derive(Debug)]
pub(super) struct TaskStream {
    operations: Arc<Operations>,
    record: TaskRecord,
    events: TurnEvents,
    /// Items that are said before the next event is read.
    waiting: VecDeque<StreamItem>,
    /// `true` once a piece of the answer was said; the next piece is appended to it.
    has_begun: bool,
    /// `true` once the model has asked its caller: the text that follows is the question, and no
    /// answer.
    is_question: bool,
    is_parked: bool,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl TaskStream {
    pub(super) fn new(
        operations: Arc<Operations>,
        record: TaskRecord,
        first: Task,
        events: TurnEvents,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            operations,
            record,
            events,
            is_parked: false,
            waiting: VecDeque::from([StreamItem::Task(first)]),
            has_begun: false,
            is_question: false,
            is_over: false,
            _permit: permit,
        }
    }

    /// Returns the next item, or `None` after the last item. Nothing is lost when the future is
    /// dropped.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Some(item);
            }
            if self.is_over {
                return None;
            }
            match self
                .operations
                .stop
                .run_until_cancelled(self.events.next())
                .await
                .flatten()
            {
                Some(Ok(progress)) => self.take(progress).await,
                // The host stops: the client subscribes again later.
                Some(Err(_)) | None => self.is_over = true,
            }
        }
    }

    async fn take(&mut self, progress: TurnProgress) {
        match progress {
            TurnProgress::Final(outcome) => self.end(outcome).await,
            TurnProgress::ApprovalNeeded(_) => self.park(),
            progress => {
                if self.is_parked {
                    self.is_parked = false;
                    self.status(&Standing::open(TaskState::Working));
                }
                self.work(progress);
            }
        }
    }

    fn park(&mut self) {
        if !std::mem::replace(&mut self.is_parked, true) {
            self.status(&Standing::open(TaskState::AuthRequired));
        }
    }

    fn work(&mut self, progress: TurnProgress) {
        match progress {
            TurnProgress::Delta(text) if !self.is_question => {
                let append = std::mem::replace(&mut self.has_begun, true);
                let artifact = Artifact::new(ANSWER, vec![Part::text(text)]);
                self.artifact(artifact, append, false);
            }
            TurnProgress::ToolStarted { tool, .. } => {
                self.is_question |= tool.as_str() == ASK_CALLER;
                self.has_begun = false;
            }
            // The next piece replaces the pieces that were said.
            TurnProgress::Retract => self.has_begun = false,
            // Names of tools and their results are not for the caller.
            _ => {}
        }
    }

    async fn end(&mut self, outcome: TurnOutcome) {
        self.is_over = true;
        let standing = Standing::of_outcome(outcome);
        let operations = self.operations.clone();
        operations
            .tasks
            .note(&self.record.id, standing.state, operations.clock.now());
        if let (TaskState::Completed, Some(outcome)) = (standing.state, &standing.outcome) {
            // The whole answer: it may differ from its pieces.
            let artifact = self.operations.artifact(&self.record, outcome).await;
            self.artifact(artifact, false, true);
        }
        self.status(&standing);
    }

    fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) {
        self.waiting.push_back(StreamItem::ArtifactUpdate(ArtifactUpdate {
            task_id: self.record.id.clone(),
            context_id: self.record.context.clone(),
            artifact,
            append,
            last_chunk,
        }));
    }

    fn status(&mut self, standing: &Standing) {
        let status = self.operations.status(&self.record, standing);
        self.waiting.push_back(StreamItem::StatusUpdate(StatusUpdate {
            task_id: self.record.id.clone(),
            context_id: self.record.context.clone(),
            status,
        }));
    }
}
