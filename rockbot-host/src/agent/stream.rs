//! A turn as a stream of what it reports.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress};
use tokio_util::task::AbortOnDropHandle;

use crate::engine::TurnError;

/// What a turn reports, up to [`TurnProgress::Final`].
///
/// Dropping the stream cancels the turn, unless another caller waits for the same message. A turn that waits for a
/// person, or has waited for one, belongs to whoever decides: it goes on without a reader.
///
/// A slow reader holds up nobody: text that it has not read yet grows together into one piece, so what waits
/// is never more than what the turn made. A turn that waits for a person says so and the stream stays open.
#[derive(Debug)]
#[must_use = "dropping the stream cancels the turn"]
pub struct TurnStream {
    queue: Arc<Queue>,
    calling: Calling,
    /// The task that polls `calling`.
    _running: AbortOnDropHandle<()>,
}

/// The call of a turn on the reader's behalf. A task polls it, and the reader can end it there and then: a task that
/// is aborted ends only later, perhaps when the host has stopped already.
#[derive(Clone)]
pub(super) struct Calling(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Result<TurnProgress, TurnError>>,
    closed: bool,
    reader: Option<Waker>,
}

/// Tells the reader about a turn, also when the task that would tell its end is given up.
#[derive(Debug)]
pub(super) struct Reports(Arc<Queue>);

impl TurnStream {
    pub(super) fn new(queue: Arc<Queue>, calling: Calling, running: AbortOnDropHandle<()>) -> Self {
        Self {
            queue,
            calling,
            _running: running,
        }
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        let call = self.calling.lock().take();
        drop(call);
    }
}

impl Calling {
    pub(super) fn new(call: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(call)))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<BoxFuture<'static, ()>>> {
        // A call that panicked is polled no more.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Calling {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut call = self.lock();
        if let Some(running) = &mut *call {
            ready!(running.as_mut().poll(cx));
            *call = None;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calling").finish_non_exhaustive()
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

impl Reports {
    pub(super) fn to(queue: &Arc<Queue>) -> Self {
        Self(queue.clone())
    }

    /// A sink that fills the queue.
    pub(super) fn sink(&self) -> ProgressSink {
        let queue = self.0.clone();
        ProgressSink::new(move |progress| queue.push(Ok(progress)))
    }

    /// How the turn ended.
    pub(super) fn end(&self, ended: Result<TurnOutcome, TurnError>) {
        self.0.push(ended.map(TurnProgress::Final));
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        // After the end this adds nothing.
        self.0.push(Err(TurnError::Halted));
    }
}

impl Queue {
    /// Adds `item`; after the last one, or an error, nothing is added any more.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
