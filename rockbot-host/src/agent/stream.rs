//! A turn as a stream of its progress.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress};
use tokio_util::task::AbortOnDropHandle;

use crate::engine::TurnError;

/// A stream of a turn's progress, which ends with [`TurnProgress::Final`] or an error.
///
/// Dropping the stream cancels the turn, unless another caller waits for the same message. A turn that waits for a
/// person, or has waited for one, continues without a reader.
///
/// A slow reader does not hold up the turn: pieces of text that it has not read yet are merged into one, so the
/// queue is bounded by what the turn produced. A turn that waits for a person reports
/// [`TurnProgress::ApprovalNeeded`], and the stream stays open.
#[derive(Debug)]
#[must_use = "dropping the stream cancels the turn"]
pub struct TurnStream {
    queue: Arc<ProgressQueue>,
    call: SharedCall,
    /// The task that polls `call`; `None` if there is no runtime for one.
    _running: Option<AbortOnDropHandle<()>>,
}

/// The call of a turn on behalf of the reader, shared by the task that polls it and the stream.
///
/// Dropping the stream must cancel the turn before `drop` returns. Aborting the task alone would not do: an aborted
/// task is dropped later by the runtime, perhaps after the host has stopped, and then the turn would be resumed.
#[derive(Clone)]
pub(super) struct SharedCall(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

#[derive(Debug, Default)]
pub(super) struct ProgressQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<Result<TurnProgress, TurnError>>,
    closed: bool,
    reader: Option<Waker>,
}

/// The writing end of a [`ProgressQueue`]. Dropped without an end, as in a task that is aborted, it ends the stream
/// with [`TurnError::Halted`].
#[derive(Debug)]
pub(super) struct ProgressWriter(Arc<ProgressQueue>);

impl TurnStream {
    pub(super) fn new(queue: Arc<ProgressQueue>, call: SharedCall, running: Option<AbortOnDropHandle<()>>) -> Self {
        Self {
            queue,
            call,
            _running: running,
        }
    }

    /// Returns the next report; `None` after the last one. No report is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<TurnProgress, TurnError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        // Taken first, so that the lock is released before the call is dropped: that runs code of the engine, which
        // cancels the turn.
        let call = self.call.lock().take();
        drop(call);
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

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.queue.lock();
        match state.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if state.closed => Poll::Ready(None),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl ProgressWriter {
    pub(super) fn new(queue: &Arc<ProgressQueue>) -> Self {
        Self(queue.clone())
    }

    /// Returns a sink that appends to the queue, except the outcome: [`ProgressWriter::end`] appends that, or the error
    /// in its place.
    pub(super) fn sink(&self) -> ProgressSink {
        let queue = self.0.clone();
        ProgressSink::new(move |progress| {
            if !matches!(progress, TurnProgress::Final(_)) {
                queue.push(Ok(progress));
            }
        })
    }

    /// Appends the end of the turn and closes the queue.
    pub(super) fn end(&self, ended: Result<TurnOutcome, TurnError>) {
        self.0.push(ended.map(TurnProgress::Final));
    }
}

impl Drop for ProgressWriter {
    fn drop(&mut self) {
        // Does nothing after `end`, which closed the queue.
        self.0.push(Err(TurnError::Halted));
    }
}

impl ProgressQueue {
    /// Appends `item` and wakes the reader. An outcome or an error closes the queue; later items are dropped.
    fn push(&self, item: Result<TurnProgress, TurnError>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.closed = matches!(item, Ok(TurnProgress::Final(_)) | Err(_));
        match (state.items.back_mut(), item) {
            (Some(Ok(TurnProgress::Delta(unread))), Ok(TurnProgress::Delta(text))) => unread.push_str(&text),
            (Some(Ok(TurnProgress::Reasoning(unread))), Ok(TurnProgress::Reasoning(text))) => unread.push_str(&text),
            (_, item) => state.items.push_back(item),
        }
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
