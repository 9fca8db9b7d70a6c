//! The slot for work in the background.

use std::fmt;

use tokio_util::sync::CancellationToken;

/// The right to work in the background, which one piece of work of a host has at a time. Dropping
/// it admits the next piece of work. [`TurnRunner::background`](super::TurnRunner::background)
/// returns it.
#[must_use = "the slot is free again once this is dropped"]
pub struct BackgroundSlot {
    cancellation: CancellationToken,
    _held: Box<dyn Send + Sync>,
}

impl BackgroundSlot {
    /// Creates a slot that is held as long as `held`, and whose work is cancelled by `cancellation`.
    pub fn new(cancellation: CancellationToken, held: impl Send + Sync + 'static) -> Self {
        Self {
            cancellation,
            _held: Box::new(held),
        }
    }

    /// Returns the token that is cancelled as soon as a message of a user is accepted.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Runs `work` to its end. Returns `None` if a user's message came first: the work is dropped
    /// then, and begins anew in another slot.
    pub async fn run<F: Future>(self, work: F) -> Option<F::Output> {
        self.cancellation.run_until_cancelled(work).await
    }
}

impl fmt::Debug for BackgroundSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cancelled = self.cancellation.is_cancelled();
        f.debug_struct("BackgroundSlot")
            .field("is_cancelled", &is_cancelled)
            .finish_non_exhaustive()
    }
}
