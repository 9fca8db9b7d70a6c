//! A message bus over Apache Pulsar, which tool services of TrustGraph can share.
//!
//! [`PulsarBus::connect`] opens one supervised connection (`link`). Publishing waits for the
//! broker's receipt, through a producer for each topic (`publisher`, `producers`), with headers
//! as properties (`mapping`). A consumer (`worker`) has a task for its topic and a task for its
//! retries (`feed`); each message that it takes is a `job`, which calls the handler and then
//! acknowledges the message, sends it to the retry topic, or makes it a dead letter
//! (`dead_letters`). `topics` has the names of topics. The parts that consumers of all brokers
//! share are in `consumer`, beside this module.
//!
//! # Guarantees
//!
//! * A message is published once the broker has confirmed it. A message that was not confirmed is
//!   sent again over the next connection, under the same message id, for up to
//!   [`PulsarSettings::publish_wait`]. Such a copy has the property `rockbot-resent` and counts
//!   as a further attempt: another consumer may have got the first copy. Within a connection the
//!   client crate repeats a message by itself, without that property and with the same sequence
//!   id: let the broker deduplicate (`brokerDeduplicationEnabled`) where two workers must not
//!   both run a mutating call.
//! * The broker does not tell who subscribes: publishing returns [`Reach::Unknown`], also where
//!   nothing does. To a topic that is not persistent a message without a subscriber is lost.
//! * A message is acknowledged after its handler has ended. A message whose connection ends
//!   before is delivered again, through the retry topic as a further attempt; if the handler had
//!   ended in this process, the copy is acknowledged and not handled again. The broker does not
//!   remember deliveries over a restart of its own, and in partitions and ephemeral subscriptions
//!   the client does not show them: such a delivery counts as the first.
//! * A message that failed waits in the retry topic of its subscription, so it does not block
//!   others. In a partition, and in an ephemeral subscription, it waits in this process. After
//!   the last attempt it goes to the dead-letter topic, with the reason.
//! * A subscription with partitions has one active consumer at a time, in one process, which
//!   handles the partitions concurrently; another consumer takes over when it ends.
//! * A subscription is to one topic: Pulsar has no routing by pattern, so
//!   [`MessageSubscriber::subscribe`] refuses wildcards.
//!
//! TLS and the token are tested up to an open connection; over TLS the broker must name its TLS
//! address for each topic. Tenants and namespaces must exist, and the broker must create topics
//! by itself, as it does by default.
//!
//! # Metrics
//!
//! Counters in the facade `metrics`, without labels: `rockbot.messaging.broker.published`,
//! `.confirmed`, `.refused` and `.reconnects`, as of the bus over RabbitMQ.
//!
//! The client crate logs through `log`, messages with their content at level DEBUG under the
//! target `pulsar`.

mod dead_letters;
mod error;
mod feed;
mod job;
mod link;
mod mapping;
mod producers;
mod publisher;
mod settings;
#[cfg(test)]
mod tests;
mod topics;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::MessageId;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeadLetter, DeadLetters, DeliveryHandler, MessageEnvelope, MessagePublisher,
    MessageSubscriber, Reach, SubscribeOptions, Subscription, TopicPattern, check_topic,
};
use tokio::time::Instant;

use crate::consumer::{BusParts, ConsumerControl, SubscriptionSpec};
use crate::meters;
use feed::Feed;
use job::Purpose;
use link::{Link, OPERATION_TIME};
use publisher::Publisher;
use worker::Worker;

pub use settings::{PulsarSettings, TopicLayout};

/// A message bus over Apache Pulsar. Cheap to clone; all clones share one connection.
///
/// All tasks belong to the bus, and end with [`Bus::close`] or when the last clone is dropped.
///
/// ```no_run
/// use rockbot_bus::pulsar::{PulsarBus, PulsarSettings};
/// use rockbot_core::messaging::{MessageEnvelope, MessagePublisher};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::messaging::BusError> {
/// let bus = PulsarBus::connect(PulsarSettings::from_url("pulsar://broker.example")?).await?;
/// bus.publish("billing.invoice", MessageEnvelope::new("billing.Invoice", "{}").into()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PulsarBus {
    shared: Arc<BusParts<Publisher>>,
}

impl PulsarBus {
    /// Connects to the broker. Later the connection is opened again whenever it is lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the broker cannot be reached within 10 seconds, or refuses the token.
    pub async fn connect(settings: PulsarSettings) -> Result<Self, BusError> {
        meters::describe();
        let link = Link::connect(settings).await?;
        let closed = link.closed.clone();
        let shared = Arc::new(BusParts::new(Publisher { link }, &closed));
        Ok(Self { shared })
    }

    fn link(&self) -> &Arc<Link> {
        &self.shared.publisher.link
    }

    async fn listen(&self, worker: &Arc<Worker>) -> Result<(), BusError> {
        let session = self.link().session(Instant::now() + OPERATION_TIME).await?;
        let topic = self.link().settings.pulsar_topic(worker.spec.pattern.as_str())?;
        let mut topics = vec![(topic, Purpose::Handle)];
        if !worker.retries_here() {
            topics.push((worker.retry_topic()?, Purpose::Retry));
        }
        for (topic, purpose) in topics {
            let feed = Feed::new(worker, topic, purpose);
            let open = feed.open(&session).await?;
            worker.tasks.spawn(feed.run(open));
        }
        Ok(())
    }

    /// Returns the topics of the dead letters of all subscriptions that this bus has had.
    fn dead_letter_topics(&self) -> Result<Vec<String>, BusError> {
        let settings = &self.link().settings;
        let kept = self.shared.subscriptions.kept().into_iter();
        let topics = kept.map(|spec| dead_letters::topic(&spec, settings));
        topics.chain([Ok(dead_letters::ephemeral_topic(settings))]).collect()
    }
}

#[async_trait]
impl MessagePublisher for PulsarBus {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        self.shared.publisher.publish(topic, &envelope).await
    }
}

#[async_trait]
impl MessageSubscriber for PulsarBus {
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        if self.link().closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        // Pulsar has no routing by pattern: its clients poll for new topics, and what was published to
        // one before that is lost to them.
        check_topic(pattern.as_str())?;
        let settings = &self.link().settings;
        let pattern = TopicPattern::new(&settings.topic_of_layout(pattern.as_str()))?;
        let name = &*settings.topic_of_layout(name);
        let spec = SubscriptionSpec {
            name: name.to_owned(),
            pattern: pattern.clone(),
            options,
        };
        self.shared.subscriptions.check(&spec)?;
        let publisher = self.shared.publisher.clone();
        let closed = &self.link().closed;
        let worker = Arc::new(Worker::new(publisher, closed, spec, handler));
        // Dropping the control ends what was begun if this fails or is cancelled.
        let subscription = Subscription::new(pattern, name, ConsumerControl(Arc::clone(&worker)));
        self.listen(&worker).await?;
        self.shared.subscriptions.add(&worker);
        Ok(subscription)
    }
}

#[async_trait]
impl Bus for PulsarBus {
    /// Handles what waits in the topics for half of `within`, then takes no further message and lets
    /// the running handlers end. What is left goes back to the broker, which delivers it again. A
    /// topic counts as empty when nothing came for 200 ms.
    async fn close(&self, within: Duration) -> CloseReport {
        let _closing = self.shared.closing.lock().await;
        if self.link().closed.is_cancelled() {
            return CloseReport::new(0);
        }
        let unfinished = self.shared.drain(within).await;
        self.link().close().await;
        CloseReport::new(unfinished)
    }
}

#[async_trait]
impl DeadLetters for PulsarBus {
    /// Returns the dead letters of all subscriptions that this bus has had, and of ephemeral ones: up
    /// to 10 000 of each.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        let _inspection = self.shared.inspection.lock().await;
        let mut letters = Vec::new();
        for topic in self.dead_letter_topics()? {
            letters.extend(dead_letters::peek(self.link(), &topic, limit).await?);
        }
        letters.sort_by_key(|letter| letter.at);
        letters.truncate(limit);
        Ok(letters)
    }

    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError> {
        let _inspection = self.shared.inspection.lock().await;
        for topic in self.dead_letter_topics()? {
            let taken = dead_letters::take(self.link(), &topic, subscription, message).await?;
            if taken.is_some() {
                return Ok(taken);
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for PulsarBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulsarBus")
            .field("url", &self.link().settings.url())
            .finish_non_exhaustive()
    }
}
