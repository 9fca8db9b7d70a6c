//! Announcements: messages of an agent that no caller asked for, as a stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{FutureExt as _, Stream};
use rockbot_core::Principal;
use rockbot_core::turn::Announcement;
use tokio::sync::oneshot;

use crate::announcements::{Reader, Taken};
use crate::engine::{TurnEngine, check_runtime};

/// A stream of the announcements to one principal, which ends when the host stops.
///
/// An announcement counts as taken once the next announcement is asked for. A program that
/// crashed is given its last announcement again. With several streams for a principal, each
/// announcement goes to a single stream.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct AnnouncementStream {
    engine: Arc<TurnEngine>,
    principal: Principal,
    /// The next announcement, once it was asked for.
    next: Option<oneshot::Receiver<Taken>>,
    /// The announcement that the program has.
    taken: Option<Taken>,
    _reader: Reader,
}

impl AnnouncementStream {
    pub(super) fn new(engine: Arc<TurnEngine>, principal: Principal) -> Self {
        Self {
            next: None,
            taken: None,
            _reader: engine.announcements.reader(principal.clone()),
            engine,
            principal,
        }
    }

    /// Returns the next announcement; `None` once the host stops. The announcement before it counts
    /// as taken. No announcement is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Announcement> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Asks for the next announcement in a task of the host, which a dropped future does not interrupt.
    fn ask(&mut self) -> oneshot::Receiver<Taken> {
        let (sender, next) = oneshot::channel();
        if check_runtime().is_ok() {
            let engine = self.engine.clone();
            let principal = self.principal.clone();
            let taken = self.taken.take();
            self.engine.spawn(async move {
                if let Some(taken) = taken {
                    taken.delivered().await;
                }
                let sending = send_next(&engine, &principal, sender);
                engine.closing.run_until_cancelled(sending).await;
            });
        }
        next
    }
}

impl Stream for AnnouncementStream {
    type Item = Announcement;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Announcement>> {
        let mut next = match self.next.take() {
            Some(next) => next,
            None => self.ask(),
        };
        match next.poll_unpin(cx) {
            Poll::Ready(taken) => {
                self.taken = taken.ok();
                Poll::Ready(self.taken.as_ref().map(|taken| taken.announcement.clone()))
            }
            Poll::Pending => {
                self.next = Some(next);
                Poll::Pending
            }
        }
    }
}

/// Waits for the next announcement and sends it. An announcement that the stream does not take
/// any more goes back.
async fn send_next(engine: &TurnEngine, principal: &Principal, mut next: oneshot::Sender<Taken>) {
    let mut added = engine.announcements.changes();
    loop {
        added.mark_unchanged();
        if let Some(taken) = engine.take_announcement(Some(principal)).await {
            // A `Taken` that comes back is dropped, which puts it back.
            drop(next.send(taken));
            return;
        }
        tokio::select! {
            // The sender lives as long as the list.
            _ = added.changed() => {}
            () = next.closed() => return,
        }
    }
}
