//! Delivery of the final reply to a message that names a reply topic: exactly one reply, whatever
//! happens.
//!
//! The task that runs a turn also sends its reply, between two records of the journal. The first
//! record, the acceptance, lets the bus acknowledge the message: before it a crash makes the bus
//! redeliver, after it the journal has the message. The second record, the end, follows the
//! reply: a crash in between ends the turn once more and sends the reply again, under the same
//! message id, which receivers deduplicate. In the other order the crash would lose the reply.
//!
//! A redelivered message whose turn has ended gets its reply again, also before the journal has
//! the end, since the first reply may have been lost; a redelivered message whose turn runs gets
//! none of its own.
//!
//! The reply follows the progress reports, and waits for them five seconds at most.
//!
//! The receiver has no store of the host's media, so a reply carries the bytes of images and
//! files, up to 512 KiB together (`MaxReplyMediaBytes`). A larger image or file, and any that the
//! bus refuses, is a reference with its media type and size. An image or file that is gone is
//! described in words.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use rockbot_core::{BoxError, TraceContext};

use super::TurnEngine;
use crate::live::LiveTurn;

/// A sender of final replies, such as to the topics of a bus.
#[async_trait]
pub(crate) trait ReplySender: fmt::Debug + Send + Sync + 'static {
    /// Sends the final reply to `request`, with the position of its turn in a trace.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply was not sent and a later attempt may succeed. A reply that can
    /// never be sent, for example because it is too large, is not an error: it is logged.
    async fn send(
        &self,
        request: &TurnRequest,
        outcome: &TurnOutcome,
        trace: Option<&TraceContext>,
    ) -> Result<(), BoxError>;
}

impl TurnEngine {
    /// Returns the sender of the turn's reply, if its message asks for one and the host has a bus.
    pub(super) fn reply_sender(&self, live: &LiveTurn) -> Option<&Arc<dyn ReplySender>> {
        self.replies.as_ref().filter(|_| live.request().reply_to.is_some())
    }

    /// Sends the reply to a redelivered message whose turn has ended.
    pub(super) fn reply_again(&self, live: &Arc<LiveTurn>, outcome: &Arc<TurnOutcome>) {
        if let Some(replies) = self.reply_sender(live) {
            let replies = replies.clone();
            let live = live.clone();
            let outcome = outcome.clone();
            self.spawn(async move {
                reply(&*replies, &live, &outcome).await;
            });
        }
    }
}

/// Sends the reply of a turn, after its progress reports. Returns `true` if it is out.
pub(super) async fn reply(replies: &dyn ReplySender, live: &LiveTurn, outcome: &TurnOutcome) -> bool {
    live.reports_sent().await;
    // A turn that did not work here has no span of its own: its reply is below the sender's.
    let trace = live.trace().or_else(|| sender_trace(live.request()));
    replies.send(live.request(), outcome, trace.as_ref()).await.is_ok()
}

/// Returns the position of the sender of a request in its trace, if it gave a valid one.
pub(super) fn sender_trace(request: &TurnRequest) -> Option<TraceContext> {
    request.trace.as_deref().and_then(TraceContext::parse)
}
