//! The standing of a task: its state, which follows from its turns.

use futures_util::FutureExt as _;
use rockbot_core::turn::{LiveTurnInfo, TurnError, TurnOutcome, TurnQuery, TurnRunner, TurnStatus};
use rockbot_core::{SessionId, TurnId};

use super::super::input;
use super::TaskRecord;
use crate::a2a_wire::{A2aError, ErrorKind, TaskState};

/// The state of a task, and the outcome of its last turn once all turns have ended.
#[derive(Debug)]
pub(in crate::a2a_server) struct Standing {
    pub(in crate::a2a_server) state: TaskState,
    pub(in crate::a2a_server) outcome: Option<TurnOutcome>,
}

impl Standing {
    pub(in crate::a2a_server) fn of_outcome(outcome: TurnOutcome) -> Self {
        Self {
            state: state_of(&outcome),
            outcome: Some(outcome),
        }
    }

    pub(in crate::a2a_server) fn open(state: TaskState) -> Self {
        Self { state, outcome: None }
    }
}

/// The turns of one task's session.
#[derive(Debug)]
pub(in crate::a2a_server) struct SessionTurns<'a> {
    turns: &'a dyn TurnRunner,
    record: &'a TaskRecord,
    live: Vec<LiveTurnInfo>,
}

impl<'a> SessionTurns<'a> {
    pub(in crate::a2a_server) fn of(turns: &'a dyn TurnRunner, record: &'a TaskRecord) -> Self {
        let query = TurnQuery::default()
            .with_principal(record.principal.clone())
            .with_session(SessionId::from(&*record.context));
        Self {
            turns,
            record,
            live: turns.live(&query),
        }
    }

    /// Returns the turns of the task that have not ended, each with `true` if it waits for a
    /// person.
    pub(in crate::a2a_server) fn open(&self) -> Vec<(&'a TurnId, bool)> {
        let turns = self.record.turns.iter().map(|turn| &turn.turn);
        turns
            .filter_map(|turn| {
                let live = self.live.iter().find(|live| live.turn == *turn)?;
                // A turn that has just ended is among the live turns for a moment.
                let has_ended = self.turns.outcome(turn).now_or_never().is_some();
                (!has_ended).then_some((turn, live.is_parked))
            })
            .collect()
    }

    /// Returns the standing of the task.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing is known of its turns any more, or the journal cannot be read.
    pub(in crate::a2a_server) async fn standing(&self) -> Result<Standing, A2aError> {
        let open = self.open();
        if !open.is_empty() {
            let is_parked = open.iter().any(|(_, is_parked)| *is_parked);
            let state = if is_parked {
                TaskState::AuthRequired
            } else {
                TaskState::Working
            };
            return Ok(Standing::open(state));
        }
        let last = self.record.last_turn().ok_or_else(A2aError::no_task)?;
        match self.turns.outcome(last).await {
            Ok(outcome) => Ok(Standing::of_outcome(outcome)),
            // The turn goes on once it is resumed, or works in another process.
            Err(TurnError::Interrupted(_) | TurnError::Elsewhere(_)) => Ok(Standing::open(TaskState::Working)),
            Err(error) => Err(refused(&error)),
        }
    }
}

/// Returns the state of a task whose last turn ended so.
pub(in crate::a2a_server) fn state_of(outcome: &TurnOutcome) -> TaskState {
    match &outcome.status {
        _ if input::is_question(outcome) => TaskState::InputRequired,
        TurnStatus::Answered | TurnStatus::Partial(_) | TurnStatus::Joined(_) => TaskState::Completed,
        TurnStatus::Parked(_) => TaskState::AuthRequired,
        TurnStatus::Refused => TaskState::Rejected,
        TurnStatus::Superseded | TurnStatus::Cancelled => TaskState::Canceled,
        _ => TaskState::Failed,
    }
}

/// Returns the agent's words beside the state. An answer is an artifact instead.
pub(in crate::a2a_server) fn words_of(standing: &Standing) -> Option<String> {
    match (standing.state, &standing.outcome) {
        // The text names nothing of the call: only the operator sees its arguments.
        (TaskState::AuthRequired, _) => Some(
            "A step of this task waits for the approval of the agent's operator, who is asked. Wait, or cancel the task."
                .to_owned(),
        ),
        (TaskState::Completed, Some(outcome)) => match &outcome.status {
            TurnStatus::Partial(limit) => Some(format!("Stopped early: the {limit} was used up.")),
            _ => None,
        },
        (_, Some(outcome)) => Some(outcome.text.clone()),
        (_, None) => None,
    }
}

/// Converts the error of a turn that was asked about, or not accepted.
pub(in crate::a2a_server) fn refused(error: &TurnError) -> A2aError {
    match error {
        TurnError::NotFound(_) => A2aError::no_task(),
        TurnError::Halted | TurnError::Busy(_) => A2aError::new(ErrorKind::Busy, error.to_string()),
        TurnError::Content(_) | TurnError::IdTooLong { .. } => A2aError::params(error.to_string()),
        TurnError::Journal(rockbot_core::turn::JournalError::Conflict { .. }) => A2aError::params(
            "`message.messageId` was used before with other content: give each message an id of its own",
        ),
        _ => {
            let reference = rockbot_core::support::reference(error);
            tracing::error!(reference, error = %error, "a request of an A2A client fails");
            A2aError::new(
                ErrorKind::Internal,
                format!("the agent failed; its operator finds the cause under {reference}"),
            )
        }
    }
}
