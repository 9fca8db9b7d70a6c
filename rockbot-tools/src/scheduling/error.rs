//! The errors of scheduling.

use rockbot_core::files::FileError;
use rockbot_core::store::StoreError;
use rockbot_core::turn::TurnError;

/// Maximum number of tasks of one principal.
pub(super) const MAX_TASKS: usize = 1000;

/// The error of a task that was not scheduled, cancelled or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The name, the time or the text of the task cannot be used. The text says why.
    #[error("{0}")]
    Invalid(String),
    /// The host is not started yet.
    #[error("the host is not started yet: call `AgentHost::start`")]
    NotStarted,
    /// The principal has no task of this name.
    #[error("there is no scheduled task `{0}`")]
    NotFound(String),
    /// The principal has 1 000 tasks.
    #[error("{MAX_TASKS} tasks are scheduled already: cancel one of them")]
    TooMany,
    /// The run before of the task is not over.
    #[error("`{0}` runs already: wait for its end")]
    Running(String),
    /// The turn of the task was not accepted.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The tasks cannot be read or written in their file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The tasks cannot be read or written where the processes of the agent share them.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ScheduleError {
    /// Returns `true` if the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Running(_) => true,
            Self::Turn(error) => error.retry_helps(),
            Self::File(error) => error.retry_helps(),
            Self::Store(error) => error.retry_helps(),
            Self::Invalid(_) | Self::NotStarted | Self::NotFound(_) | Self::TooMany => false,
        }
    }
}
