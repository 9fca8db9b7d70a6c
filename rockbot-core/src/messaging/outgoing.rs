//! Convenience methods of publishers: a message that is put together with setters and then sent,
//! and replies.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use super::{BusError, Message, MessageEnvelope, MessagePublisher, Reach};

/// Convenience methods of every publisher.
///
/// ```
/// use rockbot_core::messaging::{BusError, Message, MessagePublisher, MessagePublisherExt as _, Reach};
///
/// #[derive(serde::Serialize)]
/// struct Invoice { amount: u32 }
///
/// impl Message for Invoice {
///     const TYPE: &'static str = "billing.Invoice";
///     const TOPIC: Option<&'static str> = Some("billing.invoice");
/// }
///
/// async fn bill(bus: &dyn MessagePublisher) -> Result<(), BusError> {
///     if bus.send("shop", &Invoice { amount: 7 }).await? == Reach::NoSubscribers {
///         eprintln!("no bookkeeper is running");
///     }
///     // The invoices of one customer are handled in order, where the subscription is partitioned by key.
///     bus.send("shop", &Invoice { amount: 8 }).header("currency", "EUR").partition_key("ann").await?;
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait MessagePublisherExt: MessagePublisher {
    /// Creates the message that publishes `payload` under the topic of its type, with `source` as
    /// the sending program, once it is awaited. Headers and a partition key can be set before.
    ///
    /// # Errors
    ///
    /// Awaiting it returns an error as [`MessagePublisher::publish`] does, and if the payload
    /// cannot be serialized or its type has no topic.
    fn send<M: Message + Serialize>(&self, source: &str, payload: &M) -> OutgoingMessage<'_, Self> {
        OutgoingMessage::new(self, source, payload)
    }

    /// Publishes `reply` under the reply topic of `request`, with its correlation id. Does nothing
    /// and returns [`Reach::NoSubscribers`] if the request names no reply topic.
    ///
    /// # Errors
    ///
    /// Returns an error as [`MessagePublisher::publish`] does. The sender chooses the reply topic:
    /// a handler of untrusted messages must check it first.
    async fn reply(&self, request: &MessageEnvelope, reply: MessageEnvelope) -> Result<Reach, BusError> {
        let Some(topic) = &request.reply_to else {
            return Ok(Reach::NoSubscribers);
        };
        self.publish(topic, Arc::new(reply.in_reply_to(request))).await
    }
}

impl<P: MessagePublisher + ?Sized> MessagePublisherExt for P {}

/// A message that is published when it is awaited. [`MessagePublisherExt::send`] creates one.
#[derive(Debug)]
#[must_use = "nothing is sent until the message is awaited"]
pub struct OutgoingMessage<'a, P: ?Sized> {
    publisher: &'a P,
    /// The topic and the message, or the reason why there is no message.
    message: Result<(&'static str, MessageEnvelope), BusError>,
}

impl<'a, P: MessagePublisher + ?Sized> OutgoingMessage<'a, P> {
    pub(super) fn new<M: Message + Serialize>(publisher: &'a P, source: &str, payload: &M) -> Self {
        let message = M::TOPIC.ok_or(BusError::NoTopic(M::TYPE)).and_then(|topic| {
            let envelope = MessageEnvelope::of(payload)?.with_source(source);
            Ok((topic, envelope))
        });
        Self { publisher, message }
    }

    /// Sets a header.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|envelope| envelope.with_header(name, value))
    }

    /// Sets the [partition key](MessageEnvelope::with_partition_key): a subscription that is
    /// partitioned by [`PartitionBy::partition_key`](super::PartitionBy::partition_key) handles
    /// messages with the same key one after the other, in order.
    pub fn partition_key(self, key: impl Into<String>) -> Self {
        self.change(|envelope| envelope.with_partition_key(key))
    }

    fn change(self, change: impl FnOnce(MessageEnvelope) -> MessageEnvelope) -> Self {
        let message = self.message.map(|(topic, envelope)| (topic, change(envelope)));
        Self { message, ..self }
    }
}

impl<'a, P: MessagePublisher + ?Sized> IntoFuture for OutgoingMessage<'a, P> {
    type Output = Result<Reach, BusError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    /// Publishes the message under the topic of its type.
    ///
    /// # Errors
    ///
    /// The future returns an error as [`MessagePublisher::publish`] does, and if the payload cannot
    /// be serialized or its type has no topic.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (topic, envelope) = self.message?;
            self.publisher.publish(topic, Arc::new(envelope)).await
        })
    }
}
