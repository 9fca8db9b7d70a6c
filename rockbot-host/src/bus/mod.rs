//! The in-process bus: messages between the parts of one process, without a broker.
//!
//! Nothing is stored on disk; the messages of the bus are lost when the process ends. No message
//! vanishes silently all the same: it is handled, or becomes a dead letter with its reason, or
//! its publisher is told that it reached no subscription.
//!
//! Publishing looks up the subscriptions of the topic (`routes`), reserves capacity in all of
//! them or none (`reservation`), and pushes the message to each (`group`, around the pure
//! `queue`). The workers of a `consumer` take messages from their group, call the handler and
//! settle the verdict: acknowledged, retried after a back-off, or a dead letter (`dead_letters`).
//! `subscriptions` is the state that all clones share.
//!
//! A permit of the capacity is held until its message is settled, so the capacity bounds memory
//! and gives backpressure. The pipeline looks up the route once and carries it. The dedup window
//! holds the latest 10 000 to 20 000 acknowledged messages; a copy waits for the message in
//! flight.
//!
//! Trust comes from the configuration of the bus, and with it the right to name a principal: on
//! an unauthenticated channel all claimed principals stay in a namespace of their own. A user's
//! message is acknowledged when its turn is in the journal. Progress goes only to a topic that
//! the sender named.

mod consumer;
mod dead_letters;
mod group;
mod meters;
mod options;
mod queue;
mod reservation;
mod routes;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::MessageId;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeadLetter, DeadLetters, Delivery, DeliveryHandler, MessageEnvelope, MessagePublisher,
    MessageSubscriber, Reach, SubscribeOptions, Subscription, SubscriptionControl, TopicPattern, without_domain,
};
use tokio::task::coop;
use tokio::time;
use tokio_util::task::TaskTracker;

use consumer::Consumer;
use subscriptions::Subscriptions;

pub use options::InProcessBusOptions;

/// Time that cancelled handlers have to end, after the time to close a bus has run out.
const GRACE: Duration = Duration::from_secs(1);

/// A message bus inside one process. Cheap to clone; all clones are the same bus.
///
/// A publisher waits while a subscription that the message reaches is full, or is rejected where
/// the subscription asks for that. A message is delivered to all subscriptions that its topic
/// matches or to none. Within a subscription, messages are handled in the order in which they
/// were published as far as concurrency and retries allow; with
/// [`SubscribeOptions::partition_by`] those of one partition are handled strictly one after the
/// other.
///
/// Delivery is at least once while the process lives: a handler that fails is called again. All
/// tasks belong to the bus and end with [`Bus::close`], or when the last clone is dropped; a
/// handler that holds a clone keeps the bus alive. A subscription ends with its last consumer,
/// and what it still held becomes dead letters.
///
/// # Examples
///
/// ```
/// use rockbot_core::messaging::{
///     Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt, Reach,
/// };
/// use rockbot_host::bus::InProcessBus;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::messaging::BusError> {
/// let bus = InProcessBus::new();
/// let audit = |delivery: Delivery| async move {
///     println!("{} under {}", delivery.envelope.message_type, delivery.topic);
///     Disposition::Ack
/// };
/// let _subscription = bus.on("billing.#", "audit", audit).await?;
/// let envelope = MessageEnvelope::new("billing.Invoice", r#"{"amount":7}"#);
/// assert_eq!(bus.publish("billing.invoice", envelope.into()).await?, Reach::Subscribers);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InProcessBus {
    shared: Arc<Subscriptions>,
}

impl Default for InProcessBus {
    fn default() -> Self {
        Self::with_options(InProcessBusOptions::default())
    }
}

impl InProcessBus {
    /// Creates a bus with the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a bus with `options`.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
    ///
    /// let mut options = InProcessBusOptions::default();
    /// options.max_message_bytes = 64 * 1024;
    /// let bus = InProcessBus::with_options(options);
    /// assert_eq!(bus.evicted_dead_letters(), 0);
    /// ```
    pub fn with_options(options: InProcessBusOptions) -> Self {
        Self {
            shared: Arc::new(Subscriptions::new(options)),
        }
    }

    /// Returns how many dead letters were evicted because there were more than
    /// [`InProcessBusOptions::max_dead_letters`].
    pub fn evicted_dead_letters(&self) -> u64 {
        self.shared.dead_letters.evicted()
    }
}

#[async_trait]
impl MessagePublisher for InProcessBus {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        // A publisher that finds capacity every time never yields by itself; without this it would
        // starve the consumers on the same thread.
        coop::consume_budget().await;
        let options = &self.shared.options;
        let began = time::Instant::now();
        self.shared.check(&envelope)?;
        let route = self.shared.routes.find(topic)?;
        let mut reach = Reach::NoSubscribers;
        // The last cancel point: from here on the message is pushed to all subscriptions without an await.
        for permit in reservation::reserve(&route, options.publish_wait).await? {
            let delivery = Delivery::new(Arc::clone(&route.topic), Arc::clone(&envelope))
                .with_trust(options.trust)
                // Counted when a worker takes the message.
                .with_attempt(0);
            if permit.push(delivery) {
                reach = Reach::Subscribers;
            }
        }
        // A bus that closed while this publisher waited looks like one without subscriptions.
        if reach == Reach::NoSubscribers && self.shared.is_closed() {
            return Err(BusError::Closed);
        }
        route.meters.record(began.elapsed());
        Ok(reach)
    }
}

#[async_trait]
impl MessageSubscriber for InProcessBus {
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        let workers = options.concurrency.max(1);
        let pattern = TopicPattern::new(&without_domain(pattern.as_str()))?;
        let name = &*without_domain(name);
        let group = self.shared.join(name, &pattern, options)?;
        let consumer = Arc::new(Consumer::new(group));
        let control = ConsumerControl {
            workers: self.shared.spawn(workers, &handler, &consumer),
            consumer,
            bus: Arc::downgrade(&self.shared),
        };
        Ok(Subscription::new(pattern, name, control))
    }
}

#[async_trait]
impl Bus for InProcessBus {
    async fn close(&self, within: Duration) -> CloseReport {
        // Running out of time is no error: the report counts the messages that were left.
        let _ = time::timeout(within, self.shared.until_idle()).await;
        self.shared.end();
        let mut workers = self.shared.take_workers();
        let _ = time::timeout(GRACE, workers.shutdown()).await;
        CloseReport::new(self.shared.dead_letters.closed())
    }
}

#[async_trait]
impl DeadLetters for InProcessBus {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        Ok(self.shared.dead_letters.oldest(limit))
    }

    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError> {
        Ok(self.shared.dead_letters.take(subscription, message))
    }
}

impl fmt::Debug for InProcessBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessBus")
            .field("subscriptions", &self.shared.names())
            .field("closed", &self.shared.is_closed())
            .finish_non_exhaustive()
    }
}

/// The handle that ends one consumer. It does not keep the bus alive.
#[derive(Debug)]
struct ConsumerControl {
    consumer: Arc<Consumer>,
    workers: TaskTracker,
    bus: Weak<Subscriptions>,
}

#[async_trait]
impl SubscriptionControl for ConsumerControl {
    fn stop(&self) {
        if self.consumer.stop()
            && let Some(bus) = self.bus.upgrade()
        {
            bus.leave(self.consumer.group());
        }
    }

    async fn stopped(&self) {
        self.workers.wait().await;
    }

    fn is_active(&self) -> bool {
        !self.consumer.is_stopped() && !self.workers.is_empty()
    }
}
