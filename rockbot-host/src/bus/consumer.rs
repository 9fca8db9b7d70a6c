//! One consumer of a subscription: the workers that run its handler.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use rockbot_core::messaging::{DeliveryHandler, Disposition};
use tokio::time::Instant;

use super::group::ConsumerGroup;
use super::queue::QueuedMessage;

/// A consumer, shared by its workers: as many as its concurrency says.
#[derive(Debug)]
pub(super) struct Consumer {
    group: Arc<ConsumerGroup>,
    stopped: AtomicBool,
}

impl Consumer {
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

    /// Makes the workers stop after what they are doing. Returns whether they were at work before.
    pub(super) fn stop(&self) -> bool {
        let was_working = !self.stopped.swap(true, Ordering::AcqRel);
        self.group.wake_all();
        was_working
    }

    /// Handles messages until the consumer stops or the subscription ends.
    pub(super) async fn work(self: Arc<Self>, handler: Arc<dyn DeliveryHandler>) {
        while let Some(item) = self.group.next(&self).await {
            let delivery = item.delivery.clone();
            let running = Running::begin(&self.group, item);
            let verdict = AssertUnwindSafe(handler.handle(delivery)).catch_unwind().await;
            running.settle(verdict.unwrap_or_else(|panic| Disposition::retry(describe(&*panic))));
        }
    }
}

/// A message that is being handled. When its worker is cancelled, it is a dead letter.
struct Running<'a> {
    group: &'a ConsumerGroup,
    item: Option<QueuedMessage>,
    began: Instant,
}

impl<'a> Running<'a> {
    fn begin(group: &'a ConsumerGroup, item: QueuedMessage) -> Self {
        group.meters().begin();
        Self {
            group,
            item: Some(item),
            began: Instant::now(),
        }
    }

    fn settle(mut self, verdict: Disposition) {
        if let Some(item) = self.item.take() {
            self.group.meters().end(Some(&verdict), self.began.elapsed());
            self.group.settle(item, verdict);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.group.meters().end(None, self.began.elapsed());
            self.group.abandon(item);
        }
    }
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("no message"))
}
