//! What can go wrong with asking an agent.

use rockbot_core::store::StoreError;
use rockbot_core::turn::{JournalError, TurnOutcome};
use rockbot_core::{BoxError, CallId, TurnId};

/// A message that was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The turn ended without an answer; the outcome says how, and holds the reply to show.
    #[error("{}", .0.text)]
    Unanswered(Box<TurnOutcome>),
    /// The turn waits for a person; decide with `Agent::decide`, then wait with `Agent::outcome`.
    #[error("{} Decide with `agent.decide(request.approve())`, or use `agent.stream` to be asked.", .0.text)]
    NeedsApproval(Box<TurnOutcome>),
    /// The answer cannot be read as the type that was asked for.
    #[error("the answer does not fit `{expected}`: {source}")]
    Output {
        /// The type.
        expected: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// The journal refused.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The conversation cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host is stopping; a turn that had begun goes on when it starts again.
    #[error("the host is stopping: send the message again when it runs")]
    Halted,
    /// Another process works on the turn.
    #[error("turn {0} is being worked on by another process")]
    Elsewhere(TurnId),
    /// The turn was interrupted and has not been resumed.
    #[error("turn {0} was interrupted: call `AgentHost::resume` to go on with it")]
    Interrupted(TurnId),
    /// Nobody knows the turn, or it ended more than a day ago.
    #[error("there is no turn {0}, or it ended more than a day ago")]
    NotFound(TurnId),
    /// Nothing waits for this decision.
    #[error("call {call} of turn {turn} does not wait for a decision, or was asked about with other arguments")]
    NoSuchApproval {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
    },
    /// A layer on turns failed.
    #[error("a turn layer failed: {0}")]
    Layer(#[source] BoxError),
}

impl From<BoxError> for TurnError {
    /// Finds the typed error inside a layer's error.
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::Layer(error),
        }
    }
}
