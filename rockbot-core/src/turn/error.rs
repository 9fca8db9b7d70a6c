//! The error of a turn whose message was not answered.

use std::fmt;

use super::{Busy, GivenHistoryError, JournalError, TurnFailure, TurnOutcome, TurnStatus};
use crate::chat::{ChatError, ModelSettingsError};
use crate::content::ContentError;
use crate::id::MAX_ID_BYTES;
use crate::layer::RateLimitExceeded;
use crate::store::StoreError;
use crate::tool::ToolError;
use crate::{BoxError, CallId, TurnId};

/// A message that was not answered.
///
/// Some variants say that sending the message again helps ([`TurnError::Halted`]), others that
/// the turn lives on and its outcome can be awaited ([`TurnError::NeedsApproval`],
/// [`TurnError::Interrupted`]).
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The turn ended without an answer. The outcome has the status and the reply to show.
    #[error("{}", .0.text)]
    Unanswered(Box<TurnOutcome>),
    /// The turn waits for a person. Decide with `Agent::decide`, then wait with `Agent::outcome`.
    #[error("{} Decide with `agent.decide(request.approve())`, or use `agent.stream` to be asked.", .0.text)]
    NeedsApproval(Box<TurnOutcome>),
    /// The answer cannot be deserialized as the requested type.
    #[error("the answer does not fit `{expected}`: {cause}")]
    Output {
        /// The name of the requested type.
        expected: String,
        /// The error of the deserializer.
        cause: serde_json::Error,
    },
    /// A model setting of the request has a value that no model takes.
    #[error(transparent)]
    ModelSettings(#[from] ModelSettingsError),
    /// The message has too many parts, or a part is too large.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// An id of the message is longer than stores take.
    #[error("the {what} of the message has {len} bytes: use one of at most {MAX_ID_BYTES} bytes")]
    IdTooLong {
        /// The id that is too long: the session, the principal, the source or the id of the
        /// message.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// The host has no agent of the name that the message names.
    #[error("the host has no agent `{0}`: add it with `.agent({0:?}, …)` on its builder")]
    UnknownAgent(String),
    /// The messages that the turn was to begin from cannot be sent to a model.
    #[error(transparent)]
    History(#[from] GivenHistoryError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The conversation cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Too many messages wait already, in the session or in the host; see the host's
    /// `BacklogLimits`. Nothing was recorded of this message.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The host is stopping. A turn that had begun resumes when it starts again.
    #[error("the host is stopping: send the message again when it runs")]
    Halted,
    /// The agent was used outside a tokio runtime.
    #[error("there is no tokio runtime here: call this within one, such as in a function with `#[tokio::main]`")]
    NoRuntime,
    /// The tokio runtime was built without `enable_time` or `enable_all`.
    #[error("the tokio runtime has no timers: call `enable_all()` or `enable_time()` on its builder")]
    NoTimers,
    /// Another process holds the claim on the turn.
    #[error("another process works on turn {0}: ask that one for its outcome")]
    Elsewhere(TurnId),
    /// The turn was interrupted and has not been resumed.
    #[error("turn {0} was interrupted: call `AgentHost::resume` to continue it")]
    Interrupted(TurnId),
    /// The journal does not know the turn, or it ended more than a day ago.
    #[error("there is no turn {0}, or it ended more than a day ago")]
    NotFound(TurnId),
    /// The turn does not wait for a decision about this call with these arguments.
    #[error("call {call} of turn {turn} does not wait for a decision, or was asked about with other arguments")]
    NoSuchApproval {
        /// The id of the turn.
        turn: TurnId,
        /// The id of the call.
        call: CallId,
    },
    /// A person approved a call with arguments that do not fit its tool.
    #[error("the call is not approved, since the arguments do not fit its tool: {0}")]
    Arguments(ToolError),
    /// A turn layer passed on a call of another message. The work of a turn is done for its own
    /// message alone; ask the agent for something else.
    #[error(
        "a turn layer passed on a call of another turn, {0}: keep the principal, source, session and id of its message"
    )]
    OtherTurn(TurnId),
    /// A turn layer did not return within two minutes after the turn had ended.
    #[error("a turn layer exceeded its time limit")]
    LayerTimedOut,
    /// A turn layer failed. The error has the layer's own type, and its own sources.
    #[error("a turn layer failed: {0}")]
    Layer(BoxError),
}

/// Prints the message, since a `main` that returns the error prints its `Debug` form.
impl fmt::Debug for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TurnError {
    /// Returns `true` if the same message may be answered a little later. Send it under a new id if
    /// the turn ended: a turn that has ended is not run again.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Unanswered(outcome) => {
                matches!(outcome.status, TurnStatus::Failed(TurnFailure::Model(kind)) if kind.retry_helps())
            }
            Self::Journal(error) => error.retry_helps(),
            Self::Store(error) => error.retry_helps(),
            Self::Busy(busy) => busy.retry_helps(),
            Self::Layer(error) => layer_retry_helps(&**error),
            Self::Halted => true,
            _ => false,
        }
    }
}

/// Reports whether a call may pass a layer later that failed it with `error`, where the error is
/// of a known type.
fn layer_retry_helps(error: &(dyn std::error::Error + 'static)) -> bool {
    let limited = error.downcast_ref().map(RateLimitExceeded::retry_helps);
    let chat = error.downcast_ref().map(ChatError::retry_helps);
    let store = error.downcast_ref().map(StoreError::retry_helps);
    limited.or(chat).or(store).unwrap_or_default()
}

impl From<BoxError> for TurnError {
    /// Converts a layer's error: the engine's own error that a layer passed on is unwrapped, any
    /// other error is [`TurnError::Layer`].
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::Layer(error),
        }
    }
}
