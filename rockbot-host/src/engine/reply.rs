//! Final replies of messages that name a topic for them.
//!
//! The reply goes out before the turn's end is written down: a crash in between sends it once more, under the same
//! message id. Whoever serves the message sends it, so that it has passed the turn layers; the engine itself sends
//! the replies of turns that nobody serves any more: resumed ones, and those that waited for a person.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::turn::{TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{BoxError, TurnId};
use tokio::sync::SetOnce;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::TurnError;

/// How long the end of a turn waits for the turn layers to let its outcome through.
const LAYERS: Duration = Duration::from_secs(2 * 60);

/// How long a reply waits for the reports before it.
const REPORTS: Duration = Duration::from_secs(5);

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
    /// Somebody sends the reply.
    taken: AtomicBool,
    /// Whether the reply is out; `None` when this server will not send it.
    sent: SetOnce<Option<bool>>,
    /// Fires when the reports on the way to the reply are out.
    reports: Option<CancellationToken>,
}

/// What became of the reply in the hands of whoever serves the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// It is out, or could not be sent.
    Sent(bool),
    /// Nobody serves the message any more.
    Left,
    /// The turn layers have not let the outcome through in time.
    Late,
}

impl ReplySlot {
    /// A slot of a message whose reply comes after its reports; `reports` fires when they are out.
    pub(super) fn after(reports: CancellationToken) -> Self {
        Self {
            reports: Some(reports),
            ..Self::default()
        }
    }

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

    fn was_accepted(&self) -> bool {
        self.accepted.get().is_some()
    }

    /// Takes the reply; whoever comes later does not send it.
    fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// What the server did about the reply.
    pub(super) async fn served(&self) -> Served {
        let sent = match timeout(LAYERS, self.sent.wait()).await {
            Ok(sent) => sent,
            Err(_) if self.take() => return Served::Late,
            Err(_) => self.sent.wait().await,
        };
        sent.map_or(Served::Left, Served::Sent)
    }

    /// Waits until the reports are out, but not for ever: the reply matters more.
    pub(super) async fn reported(&self) {
        if let Some(reports) = &self.reports {
            let _ = timeout(REPORTS, reports.cancelled()).await;
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
        if self.slot.is_mine() && self.slot.take() {
            self.slot.reported().await;
            let sent = self.sender.send(&self.request, outcome).await;
            let _ = self.slot.sent.set(Some(sent.is_ok()));
        }
    }

    /// Replies that the layers failed, if the message has a turn: what they were to change must not go out as it is.
    pub(super) async fn fail(self, error: &TurnError) {
        if self.slot.was_accepted() {
            let outcome = unanswered(self.request.turn_id(), error);
            self.reply(&outcome).await;
        }
    }
}

/// The end of a turn whose outcome its layers did not let through.
pub(super) fn unanswered(turn: TurnId, why: impl fmt::Display) -> TurnOutcome {
    let text = format!("This message could not be answered: {why}.");
    TurnOutcome::new(turn, TurnStatus::Failed(TurnFailure::Internal), text)
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.slot.sent.set(None);
    }
}
