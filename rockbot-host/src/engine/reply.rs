//! Delivery of the final reply to a message that names a reply topic: exactly one reply, whatever happens.
//!
//! Two parties take part. The **server** is the task that calls [`TurnService`](super::TurnService): it passes the
//! outcome through the user's turn layers and sends the reply. The **engine** runs the turn in another task and writes
//! its end to the journal. Either can be dropped, crash or take too long without the other.
//!
//! ```text
//!  server (service.rs)                        engine (accept.rs, end.rs)
//!  ───────────────────                        ──────────────────────────
//!  ReplyGuard, task-local SLOT ── submit ───► journal.accept
//!  ack the delivery  ◄─── accept(is_owner) ── admitted to its session            [1]
//!                                             … the turn runs …
//!  turn layers       ◄─── TurnState::Ended ── published; `delivery()` waits      [2]
//!  claim()                                    or claim() after two minutes       [3]
//!  reports_sent(), ReplySender::send
//!  finish(Some(sent)) ──────────────────────► journal.finish, or release         [4]
//!  drop: finish(None) ──────────────────────► the engine sends the reply itself  [5]
//! ```
//!
//! Five parts carry the protocol; each closes a window in which a crash, a cancellation or a race would lose the reply
//! or send it twice:
//!
//! - [`ReplySlot`] (in `live/`) is the shared state. `accept` [1] releases the delivery's acknowledgement: before it, a
//!   crash makes the bus redeliver; after it, the journal has the message. It also tells a server whose message is a
//!   redelivery of a running turn that another server owns the reply.
//! - [`ReplyGuard`] is the server's end. Dropped without a reply — a layer panicked, the task was aborted — it reports
//!   `None` [5], and the engine sends the reply, so a reply never depends on the server surviving.
//! - [`ReplyDelivery`](crate::live::ReplyDelivery) is what the engine learns [2]. `TimedOut` [3] is decided by `claim`:
//!   one atomic swap, so that a slow layer and the engine cannot both send.
//! - The task-local `SLOT` in `service.rs` hands the slot past layers that call on with a [`TurnCall`](super::TurnCall)
//!   of their own making, which has none.
//! - [`ReplySender`] publishes. The reply goes out before the end is journaled [4]: a crash in between ends the turn
//!   once more and sends the reply again, under the same message id, which receivers deduplicate. In the other order
//!   the crash would lose it.
//!
//! The engine sends by itself the replies of turns without a server: resumed turns, and turns that were parked when
//! their server returned.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::turn::{TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{BoxError, TurnId};

use super::TurnError;
use crate::live::ReplySlot;

/// A sender of final replies, such as to the topics of a bus.
#[async_trait]
pub(crate) trait ReplySender: fmt::Debug + Send + Sync + 'static {
    /// Sends the final reply to `request`.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply was not sent and a later attempt may succeed. A reply that can never be sent, for
    /// example because it is too large, is not an error: it is logged.
    async fn send(&self, request: &TurnRequest, outcome: &TurnOutcome) -> Result<(), BoxError>;
}

/// The server's end of a [`ReplySlot`]. Dropped without a reply, it leaves the reply to the engine.
pub(super) struct ReplyGuard {
    pub(super) slot: Arc<ReplySlot>,
    pub(super) sender: Arc<dyn ReplySender>,
    pub(super) request: TurnRequest,
}

impl ReplyGuard {
    /// Sends the reply, unless another server owns it or the engine has claimed it.
    pub(super) async fn reply(self, outcome: &TurnOutcome) {
        if self.slot.is_owner() && self.slot.claim() {
            self.slot.reports_sent().await;
            let sent = self.sender.send(&self.request, outcome).await;
            self.slot.finish(Some(sent.is_ok()));
        }
    }

    /// Replies that the turn layers failed, if the message has a turn. The outcome itself is withheld: the layers were
    /// to change it, for example to remove what must not be shown.
    pub(super) async fn fail(self, error: &TurnError) {
        if self.slot.is_accepted() {
            let outcome = unanswered(self.request.turn_id(), error);
            self.reply(&outcome).await;
        }
    }
}

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        // After a reply this does nothing: the first `finish` counts.
        self.slot.finish(None);
    }
}

/// Returns the outcome to show instead of one that the turn layers did not return.
pub(super) fn unanswered(turn: TurnId, cause: impl fmt::Display) -> TurnOutcome {
    let text = format!("This message could not be answered: {cause}.");
    TurnOutcome::new(turn, TurnStatus::Failed(TurnFailure::Internal), text)
}
