//! The agreement between the engine and a message's server about who sends the final reply.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum time that the end of a turn waits for the turn layers to return its outcome.
const LAYER_TIME_LIMIT: Duration = Duration::from_secs(2 * 60);

/// Maximum time that a reply waits for the progress reports before it.
const REPORTS_TIME_LIMIT: Duration = Duration::from_secs(5);

/// Shared state of the engine, which ends the turn, and the server, which passes its outcome through the turn layers
/// and sends it.
///
/// The protocol, with the crash window that each part closes, is described in `engine/reply.rs`.
#[derive(Debug, Default)]
pub(crate) struct ReplySlot {
    /// Set when the message has a turn; `true` if this server is to send its reply.
    accepted: SetOnce<bool>,
    /// Set by the first party that claims the sending of the reply.
    claimed: AtomicBool,
    /// Set when the server is done: `Some(sent)`, or `None` when it leaves the reply to the engine.
    delivered: SetOnce<Option<bool>>,
    /// Fires when the progress reports of the turn are out.
    reports: Option<CancellationToken>,
}

/// The result of waiting for a message's server to deliver the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyDelivery {
    /// The server sent the reply (`true`), or failed to (`false`).
    Attempted(bool),
    /// The server is gone; the engine sends the reply.
    Unserved,
    /// The turn layers exceeded their time limit; the engine sends a failure instead of the outcome.
    TimedOut,
}

impl ReplySlot {
    /// Creates a slot whose reply is held back until `reports` fires.
    pub(crate) fn after(reports: CancellationToken) -> Self {
        Self {
            reports: Some(reports),
            ..Self::default()
        }
    }

    /// Records that the message has a turn, and whether this server is to send its reply. The first call counts.
    pub(crate) fn accept(&self, is_owner: bool) {
        let _ = self.accepted.set(is_owner);
    }

    /// Waits until the message has a turn.
    pub(crate) async fn accepted(&self) {
        self.accepted.wait().await;
    }

    /// Returns `true` if the message has a turn.
    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted.get().is_some()
    }

    /// Returns `true` if this server is to send the reply. That holds as well for a message that a layer answered
    /// without the engine, because no other server can know of it.
    pub(crate) fn is_owner(&self) -> bool {
        self.accepted.get().copied().unwrap_or(true)
    }

    /// Claims the sending of the reply. Returns `true` to the first caller alone.
    pub(crate) fn claim(&self) -> bool {
        // One atomic swap decides the race between the server and the engine's time limit.
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Records what the server did: `Some(sent)`, or `None` when it leaves the reply to the engine. The first call
    /// counts.
    pub(crate) fn finish(&self, sent: Option<bool>) {
        let _ = self.delivered.set(sent);
    }

    /// Waits until the server has delivered the reply or has given it up, but at most two minutes.
    pub(crate) async fn delivery(&self) -> ReplyDelivery {
        let sent = match timeout(LAYER_TIME_LIMIT, self.delivered.wait()).await {
            Ok(sent) => sent,
            Err(_) if self.claim() => return ReplyDelivery::TimedOut,
            // The server claimed the reply just before the limit and is sending it: two replies would be worse than
            // a longer wait, and sending is bounded by its own attempts.
            Err(_) => self.delivered.wait().await,
        };
        sent.map_or(ReplyDelivery::Unserved, ReplyDelivery::Attempted)
    }

    /// Waits until the progress reports are out, but at most five seconds: the reply matters more than its order.
    pub(crate) async fn reports_sent(&self) {
        if let Some(reports) = &self.reports {
            let _ = timeout(REPORTS_TIME_LIMIT, reports.cancelled()).await;
        }
    }
}
