//! A turn as a stream of what it reports.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress};
use tokio_util::task::AbortOnDropHandle;

use crate::engine::TurnError;

/// What a turn reports, up to [`TurnProgress::Final`]. Dropping the stream cancels the turn; one that has waited for
/// a person goes on without a reader.
///
/// A slow reader holds up nobody: text that it has not read yet grows together into one piece, so what waits
/// is never more than what the turn made. A turn that waits for a person says so and the stream stays open.
#[derive(Debug)]
pub struct TurnStream {
    queue: Arc<Queue>,
    /// The task that runs the turn on the caller's behalf.
    _running: AbortOnDropHandle<()>,
}

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
    pub(super) fn new(queue: Arc<Queue>, running: AbortOnDropHandle<()>) -> Self {
        Self {
            queue,
            _running: running,
        }
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
