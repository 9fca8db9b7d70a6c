//! The wait of a turn for tools that are on their way when it begins.
//!
//! A turn that begins waits for tools that are on their way (`PendingTools`), such as the tools
//! of servers within `Mcp.StartupWait` after the start. A cancelled turn and a host that stops do
//! not wait.

use std::time::Duration;

use rockbot_core::tool::{AwaitedTools, PendingTools};
use rockbot_core::turn::TurnProgress;
use tokio::time::{Instant, timeout, timeout_at};

use super::TurnEngine;
use crate::live::LiveTurn;

/// Duration of a wait that is not reported: it is over before the user has read of it.
const UNREPORTED: Duration = Duration::from_secs(1);

impl TurnEngine {
    /// Waits until the tools that are on their way have arrived, within the time that they have. A
    /// turn that is cancelled meanwhile, and a turn whose host stops, goes on at once: its first step
    /// ends it.
    pub(super) async fn await_tools(&self, live: &LiveTurn) {
        let Some(pending) = &self.pending_tools else {
            return;
        };
        let Some(awaited) = pending.awaited() else {
            return;
        };
        let arrived = self.arrived(live, &**pending, &awaited);
        tokio::select! {
            () = live.cancellation().cancelled() => {}
            () = self.halt.cancelled() => {}
            arrived = timeout_at(awaited.until, arrived) => {
                if arrived.is_err() {
                    let why = awaited.why.in_words(None);
                    tracing::warn!(why, "a turn begins without tools that it waited for");
                }
            }
        }
    }

    /// Waits until the tools have arrived, and reports a wait that is not short to the listener of
    /// the turn.
    async fn arrived(&self, live: &LiveTurn, pending: &dyn PendingTools, awaited: &AwaitedTools) {
        if timeout(UNREPORTED, pending.arrived()).await.is_ok() {
            return;
        }
        let left = awaited.until.saturating_duration_since(Instant::now());
        live.progress().send(|| TurnProgress::Waiting {
            until: Some(self.clock.now().after(left)),
            why: awaited.why.clone(),
        });
        pending.arrived().await;
    }
}
