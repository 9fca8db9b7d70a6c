//! Turns as a tower service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::turn::TurnOutcome;
use tokio_util::sync::CancellationToken;

use super::{TurnCall, TurnEngine, TurnError};
use crate::live::{LiveTurn, TurnState};

/// A tower service that runs turns, each within the user's layers.
///
/// A call resolves when the turn has ended or waits for a person. Dropping the last call that
/// waits for a turn cancels the turn. A mutating tool call that is running by then is still
/// awaited and recorded.
///
/// On a host with a bus, the final reply to a message with a reply topic is published to that
/// topic.
#[derive(Debug, Clone)]
pub struct TurnService {
    engine: Arc<TurnEngine>,
}

impl TurnService {
    /// Creates the service of `engine`.
    pub(crate) fn new(engine: Arc<TurnEngine>) -> Self {
        Self { engine }
    }

    /// Runs one turn and returns its outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted, the host stops, or a layer fails. A turn
    /// that ends without an answer is an outcome, not an error.
    pub async fn call(&self, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
        let live = self.engine.submit(turn, None, Duration::ZERO).await?;
        let mut caller = CallerGuard::new(live);
        // Cancel point: dropped here, the guard cancels the turn if no other caller waits for it.
        let state = caller.live.settled().await;
        caller.is_served = true;
        match state {
            TurnState::Ended(outcome) | TurnState::Parked(outcome) => TurnEngine::end_of(&caller.live, &outcome),
            // The host stops, or the journal did not take the end of the turn.
            TurnState::Working | TurnState::Halted => {
                Err(caller.live.take_error().map_or(TurnError::Halted, TurnError::from))
            }
        }
    }

    /// Accepts a message as a turn that no caller waits for, and returns the turn's id. Once this
    /// returns, the message has a turn that a crash cannot lose.
    pub(crate) async fn start(&self, turn: TurnCall) -> Result<TurnId, TurnError> {
        let live = self.engine.submit(turn, None, Duration::ZERO).await?;
        Ok(live.id().clone())
    }

    /// Accepts a message whose reply goes over the bus, after `reports` fires. Once this returns, the
    /// message has a turn that a crash cannot lose. No caller waits for the turn, so none can cancel
    /// it by leaving. A full backlog is waited for within `patience`.
    pub(crate) async fn accept(
        &self,
        turn: TurnCall,
        reports: CancellationToken,
        patience: Duration,
    ) -> Result<(), TurnError> {
        let accepted = self.engine.submit(turn, Some(reports), patience).await;
        accepted.map(drop)
    }

    /// Returns the engine that runs the turns.
    pub(crate) fn engine(&self) -> &Arc<TurnEngine> {
        &self.engine
    }
}

/// A caller that waits for a turn. When the last caller is dropped before the turn has settled,
/// the turn is cancelled.
struct CallerGuard {
    live: Arc<LiveTurn>,
    is_served: bool,
}

impl CallerGuard {
    fn new(live: Arc<LiveTurn>) -> Self {
        // `Relaxed`: only the count matters, no other data is ordered by it.
        live.callers().fetch_add(1, Ordering::Relaxed);
        Self { live, is_served: false }
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        let is_last = self.live.callers().fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !self.is_served {
            self.live.caller_left();
        }
    }
}
