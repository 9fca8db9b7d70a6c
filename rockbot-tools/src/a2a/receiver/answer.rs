//! The answers to tasks: results and errors, from the ends of their turns; cancellations.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{BusError, Delivery, DeliveryHandler, Disposition, Message as _, MessageEnvelope};
use rockbot_core::support::loggable;
use rockbot_core::turn::{TurnError, TurnFailure, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
use rockbot_core::{MessageId, TurnId};
use tokio::time::sleep;

use super::super::wire::{
    AgentMessage, AgentTaskCancelRequest, AgentTaskError, AgentTaskResult, AgentTaskState, codes,
};
use super::host::Receiver;
use super::inbound::{InboundTask, answer_id, principal_of, session_of};
use crate::a2a_callers::is_agent_name;

/// Pause before another look for a turn that is not resumed yet.
const RESUME_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of looks for an unknown turn: the message of its task may come again.
const MAX_LOOKS: u32 = 60;

/// Maximum length of a cancellation, in bytes.
const MAX_CANCEL: usize = 64 << 10;

/// The end of a task's turn.
enum End {
    Outcome(TurnOutcome),
    /// The turn is unknown, as after the loss of its journal.
    Lost,
    /// The host stops, or another process works on the turn.
    Elsewhere,
}

impl Receiver {
    /// Waits for the end of a task, and answers it.
    pub(super) async fn finish(self: Arc<Self>, task: InboundTask) {
        let sent = match self.end_of(&task).await {
            End::Elsewhere => return,
            End::Lost => {
                self.answer(&task, &failed(&task, "the task was lost", true), &answer_id(&task))
                    .await
            }
            End::Outcome(outcome) => self.answer_with(&task, &outcome).await,
        };
        match sent {
            // The next process sends the answer.
            Err(BusError::Closed) => return,
            Err(error) => {
                tracing::error!(caller = %loggable(&task.caller), %error, "an answer can never be sent");
            }
            Ok(()) => {}
        }
        self.forget(&task).await;
    }

    async fn end_of(&self, task: &InboundTask) -> End {
        for _ in 0..MAX_LOOKS {
            let error = match self.turns.events(&task.turn, 0).await {
                Ok(mut events) => loop {
                    match events.next().await {
                        Some(Ok(TurnProgress::Final(outcome))) => return End::Outcome(outcome),
                        Some(Ok(TurnProgress::ApprovalNeeded(_))) => {
                            let waits = Some("It waits for the approval of its operator.");
                            self.report(task, AgentTaskState::InputRequired, waits).await;
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => break error,
                        None => return End::Elsewhere,
                    }
                },
                Err(error) => error,
            };
            match error {
                // Not resumed yet, or its message comes again.
                TurnError::Interrupted(_) | TurnError::NotFound(_) => sleep(RESUME_PAUSE).await,
                TurnError::Unanswered(outcome) => return End::Outcome(*outcome),
                _ => return End::Elsewhere,
            }
        }
        End::Lost
    }

    async fn answer_with(&self, task: &InboundTask, outcome: &TurnOutcome) -> Result<(), BusError> {
        let id = answer_id(task);
        let sent = match state_of(outcome) {
            Some(state) => self.answer(task, &result(task, state, outcome), &id).await,
            None => self.answer(task, &error_of(task, outcome), &id).await,
        };
        match sent {
            Err(BusError::TooLarge { limit, .. }) => {
                let error = failed(task, &format!("the answer is longer than {limit} bytes"), false);
                self.answer(task, &error, &id).await
            }
            sent => sent,
        }
    }

    /// Cancels a task of a caller. The answer to the task says that it was cancelled.
    async fn cancel(&self, request: &AgentTaskCancelRequest, envelope: &MessageEnvelope) -> Disposition {
        let caller = &*envelope.source;
        let known = self.tasks.lock().await.get(caller, &request.task_id).cloned();
        let turn = known
            .as_ref()
            .map_or_else(|| turn_of(caller, request), |task| task.turn.clone());
        let ended = match &known {
            Some(_) => self.turns.cancel(&turn).await,
            // If this process does not work on the task, the end is known at once or not at all.
            None => self.turns.outcome(&turn).await.map(drop),
        };
        let (code, words) = match ended {
            Err(TurnError::NotFound(_)) => (codes::TASK_NOT_FOUND, "this agent has no such task"),
            Ok(()) if known.is_none() => (codes::TASK_NOT_CANCELABLE, "the task has ended already"),
            // The answer to the task says so. A process that works on it elsewhere gets the
            // message, too.
            _ => return Disposition::Ack,
        };
        let Some(reply_to) = envelope
            .reply_to
            .as_deref()
            .filter(|topic| self.topics.is_response(topic))
        else {
            return Disposition::Ack;
        };
        let task = InboundTask {
            task: request.task_id.clone(),
            context: request.context_id.clone(),
            caller: caller.to_owned(),
            skill: String::new(),
            reply_to: reply_to.to_owned(),
            correlation: envelope
                .correlation_id
                .as_deref()
                .unwrap_or(&request.task_id)
                .to_owned(),
            chain: Vec::new(),
            turn,
            at: self.clock.now(),
        };
        let error = AgentTaskError {
            code: code.to_owned(),
            ..failed(&task, words, false)
        };
        if let Err(error) = self.send(reply_to, &task, &error, None).await {
            tracing::warn!(%error, "a cancellation could not be answered");
        }
        Disposition::Ack
    }
}

/// The handler of cancellations. Each process gets all cancellations, since no process knows
/// which process has the task.
pub(super) struct Cancellations(pub(super) Arc<Receiver>);

#[async_trait]
impl DeliveryHandler for Cancellations {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let envelope = &delivery.envelope;
        if envelope.message_type != AgentTaskCancelRequest::TYPE || envelope.body.len() > MAX_CANCEL {
            return Disposition::dead_letter("it is no cancellation");
        }
        if delivery.trust == Trust::Untrusted || !is_agent_name(&envelope.source) {
            return Disposition::dead_letter(
                "cancellations are taken from agents with a name, over an authenticated channel",
            );
        }
        match envelope.payload::<AgentTaskCancelRequest>() {
            Ok(request) => self.0.cancel(&request, envelope).await,
            Err(error) => Disposition::dead_letter(error),
        }
    }
}

/// Returns the turn that a task of the caller has, or had.
fn turn_of(caller: &str, request: &AgentTaskCancelRequest) -> TurnId {
    let session = session_of(&request.task_id, request.context_id.as_deref());
    TurnRequest::new(session, MessageId::from(request.task_id.as_str()), "")
        .with_principal(principal_of(caller))
        .with_source(caller.to_ascii_lowercase())
        .turn_id()
}

/// Returns the state of a task whose turn ended so; `None` if it failed.
fn state_of(outcome: &TurnOutcome) -> Option<AgentTaskState> {
    match &outcome.status {
        TurnStatus::Cancelled | TurnStatus::Superseded => Some(AgentTaskState::Canceled),
        _ if outcome.is_answer() => Some(AgentTaskState::Completed),
        _ => None,
    }
}

fn result(task: &InboundTask, state: AgentTaskState, outcome: &TurnOutcome) -> AgentTaskResult {
    let text = match &outcome.status {
        TurnStatus::Partial(limit) => {
            format!(
                "(The work was stopped early, since the {limit} was used up. This is what there is.)\n\n{}",
                outcome.text
            )
        }
        _ => outcome.text.clone(),
    };
    AgentTaskResult {
        task_id: task.task.clone(),
        context_id: task.context.clone(),
        state,
        artifacts: None,
        message: Some(AgentMessage::new("agent").with_text(text)),
    }
}

/// Returns the error of a turn that failed. The error tells the caller no cause: failures inside
/// of the host are for its operator alone.
fn error_of(task: &InboundTask, outcome: &TurnOutcome) -> AgentTaskError {
    let is_retryable = matches!(&outcome.status, TurnStatus::Failed(TurnFailure::Model(kind)) if kind.retry_helps());
    failed(task, "the agent could not do the task", is_retryable)
}

fn failed(task: &InboundTask, words: &str, is_retryable: bool) -> AgentTaskError {
    AgentTaskError {
        task_id: task.task.clone(),
        context_id: task.context.clone(),
        code: codes::EXECUTION_FAILED.to_owned(),
        message: words.to_owned(),
        is_retryable,
    }
}
