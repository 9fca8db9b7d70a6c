//! A consumer of a Pulsar subscription.

use rockbot_core::messaging::BusError;

use super::publisher::Publisher;
use super::topics;
use crate::consumer;

/// A consumer that moves messages to other topics of the broker.
pub(super) type Worker = consumer::Worker<Publisher>;

impl Worker {
    /// Returns the number of messages that the broker hands over in advance.
    pub(super) fn prefetch(&self) -> usize {
        let settings = &self.publisher.link.settings;
        let options = &self.spec.options;
        let capacity = options.capacity.max(1);
        let wanted = match self.spec.is_partitioned() {
            // The messages of a partition wait for a message that is retried; the messages of other
            // partitions must get past them.
            true => capacity,
            false => options.concurrency.saturating_mul(2).min(capacity),
        };
        wanted.max(usize::from(settings.prefetch_count.max(1)).min(capacity))
    }

    /// Returns Pulsar's name of the subscription.
    pub(super) fn subscription(&self) -> &str {
        let settings = &self.publisher.link.settings;
        settings.subscription(self.spec.pattern.as_str(), &self.spec.name)
    }

    /// Returns the topic of the messages that wait for another attempt.
    pub(super) fn retry_topic(&self) -> Result<String, BusError> {
        let topic = self.publisher.link.settings.pulsar_topic(self.spec.pattern.as_str())?;
        Ok(topics::beside(&topic, self.subscription(), "RETRY"))
    }

    /// Returns `true` if a failed message waits here for its next attempt, instead of in a topic of
    /// the broker: its partition waits with it, and an ephemeral subscription ends with its process.
    pub(super) fn retries_here(&self) -> bool {
        self.spec.is_partitioned() || self.spec.options.ephemeral
    }
}
