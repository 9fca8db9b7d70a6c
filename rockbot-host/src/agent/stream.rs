//! A turn as a stream of its progress.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use rockbot_core::TurnId;
use rockbot_core::turn::{TurnError, TurnEvents, TurnProgress};
use tokio::task::AbortHandle;

/// A stream of a turn's progress, which ends with [`TurnProgress::Final`] or an error.
///
/// Dropping the stream leaves the turn alone: [`Agent::attach`](super::Agent::attach) reads on,
/// and [`Agent::cancel`](super::Agent::cancel) ends the turn. With
/// [`cancel_on_drop`](Self::cancel_on_drop) the turn ends with its reader.
///
/// A slow reader does not hold up the turn: pieces of text that it has not read yet are merged
/// into one. A turn that waits for a person reports [`TurnProgress::ApprovalNeeded`], and the
/// stream stays open.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct TurnStream {
    events: TurnEvents,
    /// The call to drop together with the stream, and the task that polls it.
    call: Option<(SharedCall, Option<AbortHandle>)>,
    cancels: bool,
}

/// The call of a turn on behalf of the reader, shared by the task that polls it and the stream.
///
/// A stream that cancels must cancel the turn before `drop` returns. Aborting the task alone
/// would not do: an aborted task is dropped later by the runtime, perhaps after the host has
/// stopped, and then the turn would be resumed.
#[derive(Clone)]
pub(super) struct SharedCall(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

impl TurnStream {
    /// Creates the stream of a turn that the reader asked for by `call`, or of a turn that runs
    /// already.
    pub(super) fn new(events: TurnEvents, call: Option<(SharedCall, Option<AbortHandle>)>) -> Self {
        Self {
            events,
            call,
            cancels: false,
        }
    }

    /// Makes dropping the stream cancel the turn, unless another caller waits for the same message. A
    /// turn that waits for a person, or has waited for one, continues without a reader, and so does a
    /// turn that was [attached to](super::Agent::attach).
    ///
    /// ```
    /// use std::time::Duration;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::TurnStatus;
    /// use rockbot_host::AgentHost;
    /// use tokio::time::timeout;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::in_memory().chat(ScriptedModel::new().hangs()).build()?;
    /// let mut stream = host.agent().stream("kitchen", "Coffee is out.").cancel_on_drop();
    /// let turn = stream.turn_id().clone();
    /// let report = timeout(Duration::from_millis(20), stream.next()).await;
    /// assert!(report.is_err(), "the model takes too long");
    /// drop(stream);
    /// assert_eq!(host.agent().outcome(&turn).await?.status, TurnStatus::Cancelled);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels = true;
        self
    }

    /// Returns the id of the turn.
    pub fn turn_id(&self) -> &TurnId {
        self.events.turn()
    }

    /// Returns the position after the last report that the stream returned;
    /// [`Agent::attach_after`](super::Agent::attach_after) reads on from there.
    pub fn sequence(&self) -> u64 {
        self.events.sequence()
    }

    /// Returns the next report; `None` after the last report. No report is lost when the future is
    /// dropped.
    pub async fn next(&mut self) -> Option<Result<TurnProgress, TurnError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        if let Some((call, running)) = self.call.take().filter(|_| self.cancels) {
            // Taken first, so that the lock is released before the call is dropped: that runs code of the
            // engine, which cancels the turn.
            let call = call.lock().take();
            drop(call);
            if let Some(running) = running {
                running.abort();
            }
        }
    }
}

impl SharedCall {
    pub(super) fn new(call: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(call)))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<BoxFuture<'static, ()>>> {
        // Poisoned only when the call panicked while it was polled; it is not polled again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for SharedCall {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Held while the call is polled. The reader's drop waits for the end of this poll, never longer.
        let mut call = self.lock();
        if let Some(running) = &mut *call {
            ready!(running.as_mut().poll(cx));
            *call = None;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for SharedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCall").finish_non_exhaustive()
    }
}

impl Stream for TurnStream {
    type Item = Result<TurnProgress, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}
