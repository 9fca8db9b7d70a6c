//! The wait of a turn for tools that are on their way when it begins.

use tokio::time::timeout_at;

use super::TurnEngine;
use crate::live::LiveTurn;

impl TurnEngine {
    /// Waits until the tools that are on their way have arrived, within the time that they have. A turn that is cancelled
    /// meanwhile, and one whose host stops, goes on at once: its first step ends it.
    pub(super) async fn await_tools(&self, live: &LiveTurn) {
        let Some(pending) = &self.pending_tools else {
            return;
        };
        let Some(awaited) = pending.awaited() else {
            return;
        };
        tracing::debug!(why = awaited.why, "a turn waits for tools");
        tokio::select! {
            () = live.cancellation().cancelled() => {}
            () = self.halt.cancelled() => {}
            arrived = timeout_at(awaited.until, pending.arrived()) => {
                if arrived.is_err() {
                    tracing::warn!(why = awaited.why, "a turn begins without tools that it waited for");
                }
            }
        }
    }
}
