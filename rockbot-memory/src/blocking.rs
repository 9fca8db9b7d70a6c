//! Work on files that may take long, off the threads that others need.

use std::fmt::Display;

use rockbot_core::BoxError;
use rockbot_core::store::StoreError;

/// Runs `work` on a thread that may wait for the disk.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, StoreError> + Send + 'static,
) -> Result<R, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(failed("a store in files did not end its work", error)))
}

/// The error of a store that tried something.
pub(crate) fn failed(tried: impl Display, error: impl Into<BoxError>) -> StoreError {
    StoreError {
        context: tried.to_string(),
        source: error.into(),
    }
}
