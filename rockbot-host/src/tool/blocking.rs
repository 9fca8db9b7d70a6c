//! The watch over tools that block their thread: nothing else runs on it meanwhile, neither other
//! turns nor the time limit of the call itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A future that measures the longest time that one poll of it blocked its thread.
///
/// Most calls end in their first poll, whose time is the time of the whole call: it is `None`
/// here, and no clock is read. Any other poll reads the system's clock twice: a paused clock of
/// tokio does not advance while a thread is blocked. No timer is needed.
pub(super) struct Watched<F> {
    future: F,
    /// Start of the first poll.
    started: tokio::time::Instant,
    longest: Option<Duration>,
}

impl<F> Watched<F> {
    /// Creates a watch over `future`, whose first poll begins at `started`.
    pub(super) fn new(future: F, started: tokio::time::Instant) -> Self {
        Self {
            future,
            started,
            longest: None,
        }
    }
}

impl<F: Future + Unpin> Future for Watched<F> {
    type Output = (F::Output, Option<Duration>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(longest) = this.longest else {
            let polled = Pin::new(&mut this.future).poll(cx);
            if polled.is_pending() {
                this.longest = Some(this.started.elapsed());
            }
            return polled.map(|value| (value, None));
        };
        let began = Instant::now();
        let polled = Pin::new(&mut this.future).poll(cx);
        let longest = longest.max(began.elapsed());
        this.longest = Some(longest);
        polled.map(|value| (value, Some(longest)))
    }
}
