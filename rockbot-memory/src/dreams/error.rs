//! The error of a plan that was not listed, applied or undone.

use rockbot_core::store::StoreError;

use super::plan::PlanState;

/// The error of a plan of a dream that was not listed, applied or undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DreamError {
    /// The host is not started yet, or its dreams are turned off.
    #[error("the host does not dream: start it, and leave `Dream.Enabled` on")]
    NotStarted,
    /// There is no plan with this id.
    #[error("there is no plan `{0}`: list them")]
    NotFound(String),
    /// The state of the plan does not allow the call.
    #[error("the plan is {} already", .0.name())]
    State(PlanState),
    /// The knowledge has changed since the plan was made. Nothing was changed.
    #[error("the plan is out of date, and nothing was changed: {0}; a later dream makes a new one")]
    Stale(String),
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DreamError {
    /// Returns `true` if the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Store(error) => error.retry_helps(),
            Self::NotStarted | Self::NotFound(_) | Self::State(_) | Self::Stale(_) => false,
        }
    }
}
