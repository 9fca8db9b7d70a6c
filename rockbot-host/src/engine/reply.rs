//! Final replies of messages that name a topic for them.
//!
//! The reply goes out before the turn's end is written down: a crash in between sends it once more, under the same
//! message id. Whoever serves the message sends it, so that it has passed the turn layers; the engine itself sends
//! the replies of turns that nobody serves any more: resumed ones, and those that waited for a person.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use tokio::sync::SetOnce;
use tokio::time::timeout;

/// How long the end of a turn waits for whoever serves its message to send the reply.
const SERVING: Duration = Duration::from_secs(2 * 60);

/// Sends final replies.
#[async_trait]
pub(crate) trait ReplySender: fmt::Debug + Send + Sync + 'static {
    /// Sends the final reply to `request`.
    ///
    /// # Errors
    ///
    /// Fails when it could not be sent, and trying again later may help.
    async fn send(&self, request: &TurnRequest, outcome: &TurnOutcome) -> Result<(), BoxError>;
}

/// What the engine and whoever serves a message tell each other.
#[derive(Debug, Default)]
pub(crate) struct ReplySlot {
    /// The message has a turn; says whether its reply is this server's to send.
    accepted: SetOnce<bool>,
    /// Whether the reply is out; `None` when this server will not send it.
    sent: SetOnce<Option<bool>>,
}

impl ReplySlot {
    pub(super) fn accept(&self, is_mine: bool) {
        // The first word counts.
        let _ = self.accepted.set(is_mine);
    }

    /// Resolves once the message has a turn.
    pub(super) async fn accepted(&self) {
        self.accepted.wait().await;
    }

    /// Whether the reply is this server's to send. A layer that answered by itself leaves no doubt.
    fn is_mine(&self) -> bool {
        self.accepted.get().copied().unwrap_or(true)
    }

    /// Whether the server sent the reply; `None` when it left that to the engine.
    pub(super) async fn sent(&self) -> Option<bool> {
        match timeout(SERVING, self.sent.wait()).await {
            Ok(sent) => *sent,
            // A server that comes later than that finds the reply taken out of its hands.
            Err(_) => {
                let _ = self.sent.set(None);
                self.sent.get().copied().flatten()
            }
        }
    }
}

/// The server's end of a slot: dropped without a reply, it leaves the reply to the engine.
pub(super) struct Serving {
    pub(super) slot: Arc<ReplySlot>,
    pub(super) sender: Arc<dyn ReplySender>,
    pub(super) request: TurnRequest,
}

impl Serving {
    /// Sends the reply, unless somebody else does.
    pub(super) async fn reply(self, outcome: &TurnOutcome) {
        if self.slot.is_mine() && self.slot.sent.get().is_none() {
            let sent = self.sender.send(&self.request, outcome).await;
            let _ = self.slot.sent.set(Some(sent.is_ok()));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.slot.sent.set(None);
    }
}
