//! Runs a future of somebody else where neither a panic nor a hang of it can reach the host.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How an isolated future ended.
#[derive(Debug)]
pub(crate) enum Isolated<T> {
    /// With its value.
    Done(T),
    /// It took too long, and was dropped.
    TimedOut,
    /// It panicked, with this message.
    Panicked(String),
}

/// A future under a time limit whose panics are caught, also those of dropping it.
///
/// The timer is made only when the future does not end at once, as most local tools do: arming one costs more
/// than such a call.
pub(crate) struct Isolate<F: ?Sized> {
    future: Option<Pin<Box<F>>>,
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future + ?Sized> Isolate<F> {
    /// Isolates `future`, which may run until `limit` after `started`.
    pub(crate) fn new(future: Pin<Box<F>>, started: Instant, limit: Duration) -> Self {
        // A limit beyond the clock's range is no limit that anybody will see the end of.
        let deadline = started
            .checked_add(limit)
            .unwrap_or_else(|| started + Duration::from_secs(86_400 * 365));
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
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        let ended = match polled {
            Ok(Poll::Ready(value)) => Isolated::Done(value),
            Err(panic) => Isolated::Panicked(message(&*panic)),
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
    /// Drops the future; returns the message of the panic that this caused, if it did.
    fn discard(&mut self) -> Option<String> {
        let future = self.future.take();
        catch_unwind(AssertUnwindSafe(|| drop(future)))
            .err()
            .map(|panic| message(&*panic))
    }
}

impl<F: ?Sized> Drop for Isolate<F> {
    fn drop(&mut self) {
        // A panic here would be one while unwinding, perhaps: it has nobody to tell.
        let _ = self.discard();
    }
}

/// The text that a panic was raised with.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
