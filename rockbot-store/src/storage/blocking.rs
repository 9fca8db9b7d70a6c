//! Work on the runtime's blocking threads, and the errors of stores in files.

use std::fmt::Display;

use rockbot_core::BoxError;
use rockbot_core::store::{StoreError, StoreErrorKind};

/// Runs `work` on a blocking thread, so that a slow disk does not hold up the runtime's workers.
///
/// Not cancelled with its caller: `work` runs to its end once it has begun, so a dropped future
/// never leaves a half-written file.
pub async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, StoreError> + Send + 'static,
) -> Result<R, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(StoreError::new(StoreErrorKind::Closed, "a store did not end its work").with_cause(error))
    })
}

/// Returns the error of a store whose operation failed because of `error`, of the kind that
/// follows from it.
pub fn failed(context: impl Display, error: impl Into<BoxError>) -> StoreError {
    StoreError::caused_by(context.to_string(), error)
}

/// Returns the error of a store whose caller's input cannot be stored.
pub fn invalid(context: impl Display, reason: impl Into<BoxError>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, context.to_string()).with_cause(reason)
}
