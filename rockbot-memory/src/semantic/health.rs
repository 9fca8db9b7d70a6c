//! Tracks whether the embedding model responds.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::embedding::EmbeddingError;
use rockbot_core::support::loggable;
use tokio::time::Instant;

/// Time for which searches do not wait for a model that failed.
const REST: Duration = Duration::from_secs(30);

/// The health of the model: `None` while it responds, or the end of the pause after a failure.
/// Changes are logged once.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<Instant>>);

impl Health {
    /// Returns `true` during the pause after a failure.
    pub(super) fn is_resting(&self) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn failed(&self, error: &EmbeddingError) {
        let until = Instant::now() + REST;
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(until);
        if before.is_none() {
            let error = loggable(&error.to_string()).to_string();
            tracing::warn!(
                error,
                "memories are found by their words alone until their model makes vectors again"
            );
        }
    }

    pub(super) fn answered(&self) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("memories are found by their meaning again");
        }
    }
}
