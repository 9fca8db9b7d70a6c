//! Isolation of foreign futures: neither a panic nor a hang of a tool, a handler or a layer
//! reaches the host.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rockbot_core::support::{caught, deadline_after};
use tokio::time::{Instant, Sleep, sleep_until};

/// The end of an isolated future.
#[derive(Debug)]
pub(crate) enum Isolated<T> {
    /// The future returned its value.
    Done(T),
    /// The time limit passed, and the future was dropped.
    TimedOut,
    /// The future panicked with this message.
    Panicked(String),
}

/// A future under a time limit whose panics are caught, including the panics of its destructor.
///
/// The timer is armed only if the first poll returns `Pending`. Most local tools end at once, and
/// arming a timer costs more than such a call.
pub(crate) struct Isolate<F: ?Sized> {
    /// Taken as soon as the future has ended, so that it is dropped under `catch_unwind` and never
    /// polled again.
    future: Option<Pin<Box<F>>>,
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future + ?Sized> Isolate<F> {
    /// Creates an isolated `future` with a deadline `limit` after `started`.
    pub(crate) fn new(future: Pin<Box<F>>, started: Instant, limit: Duration) -> Self {
        let deadline = deadline_after(started, limit);
        Self {
            future: Some(future),
            deadline,
            timer: None,
        }
    }
}

impl<F: Future + ?Sized> Future for Isolate<F> {
    type Output = Isolated<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else {
            return Poll::Pending;
        };
        let polled = caught(catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))));
        let ended = match polled {
            Ok(Poll::Ready(value)) => Isolated::Done(value),
            Err(panic) => Isolated::Panicked(panic),
            Ok(Poll::Pending) => {
                let deadline = this.deadline;
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
                ready!(timer.as_mut().poll(cx));
                Isolated::TimedOut
            }
        };
        Poll::Ready(this.discard().map_or(ended, Isolated::Panicked))
    }
}

impl<F: ?Sized> Isolate<F> {
    /// Drops the future and returns the message of the panic of its destructor, if there is one.
    fn discard(&mut self) -> Option<String> {
        let future = self.future.take();
        caught(catch_unwind(AssertUnwindSafe(|| drop(future)))).err()
    }
}

impl<F: ?Sized> Drop for Isolate<F> {
    fn drop(&mut self) {
        // A panic that leaves a destructor during unwinding aborts the process, so it ends here. The
        // caller dropped the future and waits for no result, so the message has no recipient.
        let _ = self.discard();
    }
}
