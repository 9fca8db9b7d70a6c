//! The watch over tools that block their thread: nothing else runs on it meanwhile, neither other turns nor the time limit of the
//! call itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A future that measures the longest time for which one poll of it blocked its thread.
///
/// It reads the clock twice a poll and needs no timer. The clock is the system's own, since a paused clock of tokio does not
/// advance while a thread is blocked.
pub(super) struct Watched<F> {
    future: F,
    longest: Duration,
}

impl<F> Watched<F> {
    pub(super) fn new(future: F) -> Self {
        Self {
            future,
            longest: Duration::ZERO,
        }
    }
}

impl<F: Future + Unpin> Future for Watched<F> {
    type Output = (F::Output, Duration);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let began = Instant::now();
        let polled = Pin::new(&mut self.future).poll(cx);
        self.longest = self.longest.max(began.elapsed());
        polled.map(|value| (value, self.longest))
    }
}
