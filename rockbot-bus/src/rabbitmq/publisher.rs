//! Publishing: until the broker has confirmed a message, it is sent again over each new connection.
//!
//! All messages of a connection are published over one channel, whose confirms one task owns: the
//! broker confirms a channel's messages in batches. The client crate pairs a returned message
//! with whichever confirm comes next, so the task finds it by its id and route. When the broker
//! refuses a message, which closes the channel, the other messages are published again over
//! channels of their own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::protocol::AMQPSoftError;
use rockbot_core::messaging::{BusError, MessageEnvelope, Reach, check_topic, without_domain};

use super::channels::Published;
use super::connection::{Link, Session};
use super::error::{provider, refusal};
use super::layout::{self, ExchangeLayout};
use super::mapping::{self, KeptHeaders};
use super::outgoing::{Outgoing, Route};
use super::topology::{self, RETRY_DELAY, RETRY_LEVELS};
use crate::meters;

/// Size of a frame that every broker takes, in bytes: the protocol's minimum.
const MIN_FRAME: usize = 4096;

/// The publishing side of a bus. Cheap to clone.
#[derive(Clone)]
pub(super) struct Publisher {
    pub(super) link: Arc<Link>,
}

impl Publisher {
    /// Publishes a message under a topic.
    pub(super) async fn publish(&self, topic: &str, envelope: &MessageEnvelope) -> Result<Reach, BusError> {
        let settings = &self.link.settings;
        if self.link.closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        check_topic(topic)?;
        let size = envelope.size();
        let limit = settings.max_message_bytes;
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        let topic = &*without_domain(topic);
        let (properties, route) = match settings.exchange_layout {
            ExchangeLayout::Topic => {
                let exchange = settings.exchange_name.as_str();
                let key = topic;
                (
                    mapping::properties(envelope, settings.durable)?,
                    Route { exchange, key },
                )
            }
            ExchangeLayout::Fanout => {
                Box::pin(self.declare_exchange(topic)).await?;
                let exchange = topic;
                let key = "";
                (layout::properties(envelope)?, Route { exchange, key })
            }
        };
        let message = Outgoing::new(route, &envelope.body, &properties);
        match self.send(&message).await? {
            Published::Routed => Ok(Reach::Subscribers),
            Published::Unroutable => Ok(Reach::NoSubscribers),
            Published::Refused if message.has_copies() => {
                let refused = "a full queue refused a repetition, and the first copy may be in it";
                Err(provider("a message was not confirmed by", settings, refused))
            }
            Published::Refused => Err(BusError::Rejected(topic.to_owned())),
        }
    }

    /// Sends a message to one queue.
    pub(super) async fn to_queue(
        &self,
        queue: &str,
        body: &Bytes,
        properties: &BasicProperties,
    ) -> Result<Published, BusError> {
        self.send(&Outgoing::new(Route::queue(queue), body, properties)).await
    }

    /// Sends a message to a queue after `delay`.
    ///
    /// The message waits in a retry queue, whose maximum is the next power of two, and its own
    /// expiration is the exact delay. A queue expires from its head only, so a message behind a
    /// message with a longer delay waits up to that maximum. All subscriptions share the queues;
    /// there are at most 26.
    pub(super) async fn after(
        &self,
        delay: Duration,
        queue: &str,
        body: &Bytes,
        properties: &BasicProperties,
    ) -> Result<Published, BusError> {
        let settings = &self.link.settings;
        let (min, max) = (1 << RETRY_LEVELS.start(), 1 << RETRY_LEVELS.end());
        let delay = topology::milliseconds(delay).min(max);
        let level = delay.max(min).next_power_of_two();
        let step = mapping::number(level);
        let expiration = delay.to_string();
        let properties = mapping::readdressed(properties, vec![(RETRY_DELAY, step)], KeptHeaders::ALL);
        let properties = properties.with_expiration(expiration.as_str().into());
        let exchange = topology::retry_exchange(settings);
        let route = Route {
            exchange: &exchange,
            key: queue,
        };
        self.declare_retry(level).await?;
        self.send(&Outgoing::new(route, body, &properties)).await
    }

    /// Declares the fanout exchange of a topic, once a connection.
    async fn declare_exchange(&self, topic: &str) -> Result<(), BusError> {
        let declaring = |session: Arc<Session>| async move {
            if session.knows_exchange(topic) {
                return Ok(());
            }
            let channel = session.channel().await?;
            layout::declare_exchange(&channel, topic).await?;
            session.know_exchange(topic);
            channel.close(200, "done".into()).await
        };
        let doing = "cannot declare an exchange on";
        let deadline = self.link.deadline();
        self.link.repeat(doing, deadline, declaring).await
    }

    /// Declares the retry queue of a delay, once a connection.
    async fn declare_retry(&self, level: u64) -> Result<(), BusError> {
        let settings = &self.link.settings;
        let declaring = |session: Arc<Session>| async move {
            if session.knows_delay(level) {
                return Ok(());
            }
            let channel = session.channel().await?;
            topology::declare_retry(&channel, settings, level).await?;
            session.know_delay(level);
            channel.close(200, "done".into()).await
        };
        let doing = "cannot declare a retry queue on";
        let deadline = self.link.deadline();
        self.link.repeat(doing, deadline, declaring).await
    }

    /// Sends a message until the broker has confirmed it. A copy of it has the same id and a header
    /// that marks it as a copy, so that receivers can recognize it.
    async fn send(&self, message: &Outgoing<'_>) -> Result<Published, BusError> {
        if message.frame_size() > MIN_FRAME {
            Box::pin(self.check_frame(message)).await?;
        }
        let sending = |session: Arc<Session>| async move {
            meters::sent();
            let sent = session.publish(message).await;
            let refused = sent.as_ref().err().and_then(refusal);
            if refused == Some(AMQPSoftError::NOTFOUND) {
                // The exchange is gone: the next session declares it.
                session.give_up();
            }
            sent
        };
        let sent = self.link.repeat("cannot publish on", self.link.deadline(), sending);
        let published = sent.await?;
        match published {
            Published::Routed => meters::confirmed(),
            Published::Unroutable => meters::returned(),
            Published::Refused => meters::refused(),
        }
        Ok(published)
    }

    /// Checks that the properties of a message fit into one frame. The broker would end the
    /// connection, each time that the message is sent.
    async fn check_frame(&self, message: &Outgoing<'_>) -> Result<(), BusError> {
        let limit = self.link.session(self.link.deadline()).await?.max_frame();
        let size = message.frame_size();
        if size > limit {
            Err(BusError::PropertyTooLong {
                property: "properties and headers".to_owned(),
                size,
                limit,
            })
        } else {
            Ok(())
        }
    }
}
