//! A consumer of a subscription: the workers that run its handler.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use rockbot_core::messaging::{DeliveryHandler, Disposition};
use rockbot_core::support::caught;
use tokio::time::Instant;

use super::group::ConsumerGroup;
use super::queue::QueuedMessage;

/// A consumer of a group, shared by its workers, whose number is the concurrency of the
/// subscription.
#[derive(Debug)]
pub(super) struct Consumer {
    group: Arc<ConsumerGroup>,
    stopped: AtomicBool,
}

impl Consumer {
    /// Creates a running consumer of `group`.
    pub(super) fn new(group: Arc<ConsumerGroup>) -> Self {
        Self {
            group,
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn group(&self) -> &Arc<ConsumerGroup> {
        &self.group
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Stops the workers after their current message. Returns `true` if the consumer was running
    /// before, so that it leaves its group exactly once.
    pub(super) fn stop(&self) -> bool {
        // The flag is set before the wake-up: a woken worker must see it. `Notify` keeps no permit for
        // `notify_waiters`, but a worker that is about to wait has created its `Notified` before it
        // reads the flag, which catches both.
        let was_running = !self.stopped.swap(true, Ordering::AcqRel);
        self.group.wake_all();
        was_running
    }

    /// Handles messages until the consumer stops or the subscription ends.
    pub(super) async fn work(self: Arc<Self>, handler: Arc<dyn DeliveryHandler>) {
        while let Some(message) = self.group.next(|| self.is_stopped()).await {
            let delivery = message.delivery.clone();
            let running = RunningHandler::begin(&self.group, message);
            // A panic must not end the worker: the subscription would lose a part of its concurrency for good.
            let verdict = caught(AssertUnwindSafe(handler.handle(delivery)).catch_unwind().await);
            running.settle(
                verdict.unwrap_or_else(|panic| Disposition::retry(format_args!("the handler panicked: {panic}"))),
            );
        }
    }
}

/// A guard of a message that is being handled. If its worker is cancelled, the message becomes a
/// dead letter: it may have taken effect, and must not vanish without a trace.
struct RunningHandler<'a> {
    group: &'a ConsumerGroup,
    message: Option<QueuedMessage>,
    began: Instant,
}

impl<'a> RunningHandler<'a> {
    fn begin(group: &'a ConsumerGroup, message: QueuedMessage) -> Self {
        group.meters().begin();
        Self {
            group,
            message: Some(message),
            began: Instant::now(),
        }
    }

    fn settle(mut self, verdict: Disposition) {
        if let Some(message) = self.message.take() {
            self.group.meters().end(Some(&verdict), self.began.elapsed());
            self.group.settle(message, verdict);
        }
    }
}

impl Drop for RunningHandler<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.group.meters().end(None, self.began.elapsed());
            self.group.abandon(message);
        }
    }
}
