//! A consumer of a RabbitMQ subscription.

use std::sync::Arc;

use super::connection::{Link, Session};
use super::publisher::Publisher;
use super::topology;
use crate::consumer;

/// A consumer that moves messages to other queues of the broker.
pub(super) type Worker = consumer::Worker<Publisher>;

impl Worker {
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.publisher.link
    }

    /// Declares the queues of the subscription again, since a queue is gone.
    pub(super) async fn redeclare(&self) {
        let link = self.link();
        let spec = &self.spec;
        let declaring = |session: Arc<Session>| async move {
            session.forget_delays();
            let channel = topology::declare(session.connection(), spec, &link.settings).await?;
            channel.close(200, "done".into()).await
        };
        let doing = "cannot declare the queues of a subscription on";
        if let Err(error) = link.repeat(doing, link.deadline(), declaring).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(subscription = %spec.name, %error, cause, "a queue that is gone cannot be declared again");
        }
    }

    /// Returns the number of messages that the broker hands over in advance, per queue.
    pub(super) fn prefetch(&self) -> u16 {
        let settings = &self.link().settings;
        let options = &self.spec.options;
        let capacity = options.capacity.max(1);
        let wanted = match self.spec.is_partitioned() {
            // The messages of a partition wait for a message that is retried; the messages of other
            // partitions must get past them.
            true => capacity.div_ceil(settings.partitions.into()),
            false => options.concurrency.saturating_mul(2).min(capacity),
        };
        let least = usize::from(settings.prefetch_count.max(1)).min(capacity);
        u16::try_from(wanted.max(least)).unwrap_or(u16::MAX)
    }
}
