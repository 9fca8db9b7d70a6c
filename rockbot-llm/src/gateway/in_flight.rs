//! Counts the calls in flight, and reports when there are none.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A counter of calls that a task can wait on until it is zero.
///
/// The count is read before each model call of a host, so it is an atomic and takes no lock.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    count: AtomicUsize,
    zero: Notify,
}

impl InFlight {
    /// Counts a call until the guard is dropped.
    pub(super) fn begin(&self) -> InFlightGuard<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(self)
    }

    /// Returns the number of calls in flight.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until no call is in flight. Cancellation-safe: a dropped wait leaves nothing behind.
    pub(super) async fn none(&self) {
        loop {
            // Created before the count is read: `notify_waiters` wakes every `Notified` that exists when it
            // is called, polled or not, so a call that ends between the read and the await is not missed.
            let zero = self.zero.notified();
            if self.count() == 0 {
                return;
            }
            zero.await;
        }
    }
}

/// A call that counts as in flight until it is dropped, whether it ended or was cancelled.
pub(super) struct InFlightGuard<'a>(&'a InFlight);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.zero.notify_waiters();
        }
    }
}
