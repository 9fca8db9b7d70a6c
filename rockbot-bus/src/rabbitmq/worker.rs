//! A consumer of a RabbitMQ subscription.

use std::sync::Arc;

use super::connection::Link;
use super::publisher::Publisher;
use crate::consumer;

/// A consumer that moves messages to other queues of the broker.
pub(super) type Worker = consumer::Worker<Publisher>;

impl Worker {
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.publisher.link
    }

    /// Returns the number of messages that the broker hands over in advance, per queue.
    pub(super) fn prefetch(&self) -> u16 {
        let (settings, options) = (&self.link().settings, &self.spec.options);
        let capacity = options.capacity.max(1);
        let wanted = match self.spec.is_partitioned() {
            // The messages of a partition wait for one that is retried; those of others must get past them.
            true => capacity.div_ceil(settings.partitions.into()),
            false => options.concurrency.saturating_mul(2).min(capacity),
        };
        let least = usize::from(settings.prefetch_count.max(1)).min(capacity);
        u16::try_from(wanted.max(least)).unwrap_or(u16::MAX)
    }
}
