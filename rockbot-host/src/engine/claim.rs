//! The claim of the engine on a turn, which is released wherever its holder ends.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::support::caught;
use rockbot_core::turn::{Claim, JournalError, RunBody};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::TurnEngine;

/// Maximum time for the release of a claim whose holder was dropped, with a journal that waits.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// A claim on a turn. Dropping it releases the turn: also when its task is aborted, panics, or
/// its caller is gone. Else the turn would be of no process until the lease ends.
pub(super) struct HeldClaim {
    engine: Arc<TurnEngine>,
    claim: Claim,
    is_held: bool,
}

impl HeldClaim {
    pub(super) fn new(engine: &Arc<TurnEngine>, claim: Claim) -> Self {
        engine.keep(&claim);
        Self {
            engine: engine.clone(),
            claim,
            is_held: true,
        }
    }

    /// Releases the turn.
    pub(super) async fn release(mut self) {
        // Held until it is done: dropped meanwhile, it is released once more, which changes nothing.
        self.engine.journal.release(copy_of(&self.claim)).await;
        self.is_held = false;
    }

    /// Writes the end of the turn, which releases it. It is released as well when the write fails.
    pub(super) async fn finish(mut self, outcome: &RunBody) -> Result<(), JournalError> {
        let finished = self.engine.journal.finish(&self.claim, outcome).await;
        match finished {
            Ok(()) => self.is_held = false,
            Err(_) => self.release().await,
        }
        finished
    }
}

impl Deref for HeldClaim {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.claim
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        self.engine.let_go(&self.claim);
        if !self.is_held {
            return;
        }
        let journal = self.engine.journal.clone();
        let claim = copy_of(&self.claim);
        let mut releasing = Box::pin(async move { journal.release(claim).await });
        // The journals here release without waiting, so that the turn is free once its holder is
        // dropped. A journal is the user's code, and a panic while another panic unwinds would end
        // the process.
        let released = caught(catch_unwind(AssertUnwindSafe(|| releasing.as_mut().now_or_never())));
        if let (Ok(None), Ok(runtime)) = (released, Handle::try_current()) {
            let releasing = async move { drop(timeout(RELEASE_TIME, releasing).await) };
            self.engine.tasks.spawn_on(releasing, &runtime);
        }
    }
}

/// Returns another value of the same right: journals take it by value when it is released.
fn copy_of(claim: &Claim) -> Claim {
    Claim::new(claim.run().clone(), claim.fence())
}
