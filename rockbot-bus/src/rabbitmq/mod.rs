//! A message bus over RabbitMQ, in the topology and the message format of the original.
//!
//! [`RabbitMqBus::connect`] opens one supervised connection (`connection`), which comes back
//! whenever it is lost. Publishing waits for the broker's confirm (`publisher`), on a channel
//! that all messages share (`pipeline`), and on a channel of its own for a message that the
//! broker may have refused (`channels`), in the original's properties and headers (`mapping`);
//! `outgoing` is a message with its copies so far. A consumer (`worker`) has a task for each
//! queue (`feed`) that declares the topology (`topology`) again on every connection; each message
//! that it takes is a `job`, which calls the handler and then acknowledges the message, sends it
//! to a retry queue, or makes it a dead letter (`dead_letters`). Partitions are in `partitions`.
//! The parts that consumers of all brokers share are in `consumer`, beside this module. `layout`
//! is another layout of exchanges, for brokers shared with other frameworks.
//!
//! # Guarantees
//!
//! * A message is published once the broker has confirmed it. A message that was not confirmed is
//!   sent again over the next connection, under the same message id, for up to
//!   [`RabbitMqSettings::publish_wait`]. Every copy but the first has the header
//!   `x-rockbot-resent` and counts as a further attempt: another consumer may have got the first
//!   copy.
//! * A message whose properties and headers are larger than a frame of the broker (`frame_max`)
//!   is refused with [`BusError::PropertyTooLong`]; its body may be. A message that only has no
//!   room for the notes of a retry becomes a dead letter, and a dead letter leaves out the
//!   headers that have no room: [`DeadLetter::omitted_headers`] counts them.
//! * No operation waits longer than `publish_wait` for a broker that does not answer.
//! * A message that no queue is bound to comes back, and publishing returns
//!   [`Reach::NoSubscribers`]. A full queue is [`BusError::Rejected`].
//! * A message is acknowledged after its handler has ended. A message whose connection ends
//!   before is delivered again; if the handler had ended in this process, the copy is
//!   acknowledged and not handled again.
//! * A message that failed waits in a retry queue of the broker, so it does not block other
//!   messages, except messages of its partition. After the last attempt it goes to the
//!   subscription's dead-letter queue, with the reason.
//! * A message that the broker does not take to a retry or dead-letter queue is moved again, and
//!   not handled again.
//! * [`Delivery::attempt`] counts the deliveries whose handler may have begun. A message that a
//!   consumer holds and has not begun when it stops is published to its queue again with its
//!   attempts so far, behind the messages that wait there. In two cases the broker does not tell
//!   how far a delivery came, and the next delivery counts as a further attempt though the
//!   handler may not have begun: the channel, connection or process of the consumer ended; or the
//!   message is of a partition, whose order it must keep.
//! * A handler that runs longer than the broker's `consumer_timeout`, 30 minutes by default,
//!   loses its channel: raise that limit of the broker for such handlers.
//!
//! # Metrics
//!
//! Counters in the facade `metrics`, without labels:
//!
//! | metric | counts |
//! |---|---|
//! | `rockbot.messaging.broker.published` | messages that were sent, repetitions included |
//! | `rockbot.messaging.broker.confirmed` | messages that the broker has confirmed |
//! | `rockbot.messaging.broker.returned` | messages that came back, since no queue is bound to their topic |
//! | `rockbot.messaging.broker.refused` | messages that were refused, since a queue is full |
//! | `rockbot.messaging.broker.redelivered` | deliveries of messages that the broker had delivered before |
//! | `rockbot.messaging.broker.shortened` | dead letters without some headers, which do not fit into a frame |
//! | `rockbot.messaging.broker.reconnects` | connections that were opened again |
//!
//! [`Delivery::attempt`]: rockbot_core::messaging::Delivery::attempt
//!
//! The client crate logs returned messages with their content, at level WARN under the target
//! `lapin::returned_messages`: set that target to ERROR where the content of messages must not be
//! logged.
//!
//! A process of the original can share a RabbitMQ broker: names, arguments, properties and `rb-`
//! headers are its own, and values that it cannot express travel in headers and queues that it
//! does not see.

mod channels;
mod connection;
mod dead_letters;
mod error;
mod feed;
mod job;
mod layout;
mod mapping;
mod outgoing;
mod partitions;
mod pipeline;
mod publisher;
mod settings;
#[cfg(test)]
mod tests;
mod topology;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lapin::Channel;
use lapin::options::QueueDeleteOptions;
use rockbot_core::MessageId;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeadLetter, DeadLetters, DeliveryHandler, MessageEnvelope, MessagePublisher,
    MessageSubscriber, Reach, SubscribeOptions, Subscription, TopicPattern, without_domain,
};

use connection::{Link, Session};
use dead_letters::Wanted;
use feed::{Feed, Purpose};
use partitions::Share;
use publisher::Publisher;
use worker::Worker;

use crate::consumer::{BusParts, ConsumerControl, SubscriptionSpec};
use crate::meters;

pub use layout::ExchangeLayout;
pub use settings::RabbitMqSettings;

/// Maximum length of a queue's name, in bytes.
const MAX_NAME: usize = 255;

/// A message bus over RabbitMQ. Cheap to clone; all clones share one connection.
///
/// All tasks belong to the bus, and end with [`Bus::close`] or when the last clone is dropped.
///
/// ```no_run
/// use rockbot_bus::rabbitmq::{RabbitMqBus, RabbitMqSettings};
/// use rockbot_core::messaging::{MessageEnvelope, MessagePublisher};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::messaging::BusError> {
/// let settings = RabbitMqSettings::from_url("amqp://agent:secret@broker.example")?;
/// let bus = RabbitMqBus::connect(settings).await?;
/// bus.publish("billing.invoice", MessageEnvelope::new("billing.Invoice", "{}").into()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RabbitMqBus {
    shared: Arc<BusParts<Publisher>>,
}

impl RabbitMqBus {
    /// Connects to the broker. Later the connection is opened again whenever it is lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the broker cannot be reached within 10 seconds, or refuses the user.
    pub async fn connect(settings: RabbitMqSettings) -> Result<Self, BusError> {
        meters::describe();
        let link = Link::connect(settings).await?;
        let closed = link.closed.clone();
        let shared = Arc::new(BusParts::new(Publisher { link }, &closed));
        Ok(Self { shared })
    }

    /// Deletes the queues of a subscription that is no longer used, with all messages and dead
    /// letters in them.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus is closed or the broker is unreachable.
    pub async fn delete_subscription(&self, name: &str) -> Result<(), BusError> {
        let settings = &self.link().settings;
        let queue = topology::queue(name, settings);
        let partitions = (0..settings.partitions).map(|index| format!("{queue}.p{index}"));
        let queues = [queue.clone(), format!("{queue}.dlq")].into_iter().chain(partitions);
        self.delete_queues(queues).await
    }

    /// Deletes what this bus has declared and no other uses: the queues of its subscriptions with
    /// everything in them, then the exchanges to which nothing is bound any more and the retry queues
    /// that are empty. For buses that are made for a while, as in tests. End the subscriptions first:
    /// a consumer declares its queue again.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus is closed or the broker is unreachable.
    pub async fn delete_topology(&self) -> Result<(), BusError> {
        for spec in self.shared.subscriptions.kept() {
            self.delete_subscription(&spec.name).await?;
        }
        let (link, deadline) = (self.link(), self.link().deadline());
        let topics = &link.session(deadline).await?.take_exchanges();
        let deleting = |session: Arc<Session>| async move {
            layout::delete_exchanges(session.connection(), topics).await?;
            topology::delete_unused(session.connection(), &link.settings).await
        };
        link.repeat("cannot delete the exchanges on", deadline, deleting).await
    }

    async fn delete_queues(&self, queues: impl Iterator<Item = String>) -> Result<(), BusError> {
        let queues = &queues.collect::<Vec<_>>();
        let deleting = |channel: Channel| async move {
            for queue in queues {
                let options = QueueDeleteOptions::default();
                channel.queue_delete(queue.as_str().into(), options).await?;
            }
            Ok(())
        };
        let link = self.link();
        let doing = "cannot delete a queue on";
        link.operate(doing, link.deadline(), deleting).await
    }

    fn link(&self) -> &Arc<Link> {
        &self.shared.publisher.link
    }

    async fn listen(&self, worker: &Arc<Worker>) -> Result<(), BusError> {
        let session = self.link().session(self.link().deadline()).await?;
        let spec = &worker.spec;
        let stop = worker.stop.clone();
        let purpose = if spec.is_partitioned() {
            Purpose::Spread
        } else {
            Purpose::Handle
        };
        let feed = Feed::new(worker, spec.queue(&self.link().settings), purpose, stop);
        let open = feed.open(&session).await?;
        worker.tasks.spawn(feed.run(Some(open)));
        if spec.is_partitioned() {
            let mut share = Share::new(worker);
            share.balance().await?;
            worker.tasks.spawn(share.keep());
        }
        Ok(())
    }

    /// Returns the names of all dead-letter queues of this bus.
    fn dead_letter_queues(&self) -> Vec<String> {
        let kept = self.shared.subscriptions.kept().into_iter();
        let queues = kept.map(|spec| spec.dead_letters(&self.link().settings));
        queues
            .chain([topology::ephemeral_dead_letters(&self.link().settings)])
            .collect()
    }
}

#[async_trait]
impl MessagePublisher for RabbitMqBus {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        self.shared.publisher.publish(topic, &envelope).await
    }
}

#[async_trait]
impl MessageSubscriber for RabbitMqBus {
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
        let pattern = TopicPattern::new(&without_domain(pattern.as_str()))?;
        let name = &*without_domain(name);
        let longest = topology::queue(name, &self.link().settings).len() + ".p65535".len();
        if longest > MAX_NAME {
            return Err(BusError::PropertyTooLong {
                property: "name of a queue".to_owned(),
                size: longest,
                limit: MAX_NAME,
            });
        }
        let spec = SubscriptionSpec {
            name: name.to_owned(),
            pattern: pattern.clone(),
            options,
        };
        spec.check(&self.link().settings)?;
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
impl Bus for RabbitMqBus {
    /// Handles what waits in the queues for half of `within`, then takes no further message and lets
    /// the running handlers end. What is left goes back to the broker, which delivers it again.
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
impl DeadLetters for RabbitMqBus {
    /// Returns the dead letters of all subscriptions that this bus has had, and of ephemeral ones.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        let _inspection = self.shared.inspection.lock().await;
        let (link, deadline) = (self.link(), self.link().deadline());
        let mut letters = Vec::new();
        for queue in &self.dead_letter_queues() {
            let inspecting = |session: Arc<Session>| async move {
                let channel = session.channel().await?;
                dead_letters::peek(&channel, queue, limit, &link.settings).await
            };
            letters.extend(link.repeat("cannot read dead letters on", deadline, inspecting).await?);
        }
        letters.sort_by_key(|letter| letter.at);
        letters.truncate(limit);
        Ok(letters)
    }

    /// Removes and returns a dead letter. If the connection is lost at that moment, the broker may
    /// keep the letter all the same: it is returned in any case, so that it is not lost.
    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError> {
        let _inspection = self.shared.inspection.lock().await;
        let (link, deadline) = (self.link(), self.link().deadline());
        let wanted = &Wanted { subscription, message };
        let queues = &[
            format!("{}.dlq", topology::queue(subscription, &link.settings)),
            topology::ephemeral_dead_letters(&link.settings),
        ];
        for queue in queues {
            let finding = |session: Arc<Session>| async move {
                let channel = session.channel().await?;
                dead_letters::find(channel, queue, wanted, &link.settings).await
            };
            let found = link.repeat("cannot take a dead letter on", deadline, finding).await?;
            if let Some(found) = found {
                return Ok(Some(found.take(deadline).await));
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for RabbitMqBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqBus")
            .field("broker", &self.link().settings.address())
            .field("closed", &self.link().closed.is_cancelled())
            .finish_non_exhaustive()
    }
}
