//! The traits of a bus, which carries messages between programs or between the parts of one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{BusError, DeliveryHandler, MessageEnvelope, SubscribeOptions, Subscription, TopicPattern};
use crate::shared::share;

/// The publishing side of a bus.
#[async_trait]
pub trait MessagePublisher: fmt::Debug + Send + Sync + 'static {
    /// Publishes a message under `topic`. Every subscription whose pattern matches gets a copy. An
    /// in-process bus returns once all of them hold it, a bus with a broker once the broker has it.
    ///
    /// # Errors
    ///
    /// Returns an error if the topic is invalid, the message is too large, a subscription is full, or
    /// the bus is closed or unreachable. Unless the error says so, it is then not known whether a
    /// subscription got the message: publish it again under the same message id, so that receivers
    /// can deduplicate it.
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError>;
}

share! {
    MessagePublisher {
        async publish<'a>(topic: &'a str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError>;
    }
}

/// The reach of a published message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// At least one subscription has the message.
    Subscribers,
    /// No subscription matches the topic; the message is dropped.
    NoSubscribers,
    /// The bus has the message and cannot tell who subscribes.
    Unknown,
}

/// The subscribing side of a bus.
#[async_trait]
pub trait MessageSubscriber: fmt::Debug + Send + Sync + 'static {
    /// Adds a consumer to the subscription `name`. Consumers of one name compete: each message goes
    /// to a single consumer. Subscriptions with different names get a copy each.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Conflict`] if the name is in use with another pattern or other options,
    /// and an error if the bus is closed or unreachable.
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError>;
}

share! {
    MessageSubscriber {
        async subscribe<'a>(
            pattern: TopicPattern,
            name: &'a str,
            options: SubscribeOptions,
            handler: Arc<dyn DeliveryHandler>,
        ) -> Result<Subscription, BusError>;
    }
}

/// A message bus: publisher and subscriber in one.
///
/// Every bus guarantees: a message is delivered at least once; within a subscription of
/// concurrency 1, and within a partition, messages are handled in the order of their publication;
/// a message that fails does not block messages outside its partition; no message is dropped
/// without a trace. A topic with a domain of Pulsar is the same as the topic [without
/// it](super::without_domain), unless the bus has such domains.
#[async_trait]
pub trait Bus: MessagePublisher + MessageSubscriber {
    /// Closes the bus: lets the subscriptions finish the messages that they hold, for at most
    /// `within`, then cancels the handlers that still run. Afterwards publishing and subscribing
    /// fail. Closing twice does nothing.
    ///
    /// Until then messages are accepted, because finishing handlers may publish: stop the sources of
    /// new work first. A handler that calls this waits for itself until the time is over.
    async fn close(&self, within: Duration) -> CloseReport;
}

share! {
    Bus {
        async close(within: Duration) -> CloseReport;
    }
}

/// The result of closing a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
#[non_exhaustive]
pub struct CloseReport {
    /// The number of messages that were not handled. An in-process bus keeps them as dead letters, a
    /// broker redelivers them.
    pub unfinished: usize,
}

impl CloseReport {
    /// Creates the report of a bus that did not handle `unfinished` messages.
    pub fn new(unfinished: usize) -> Self {
        Self { unfinished }
    }
}

/// Convenience methods of every subscriber.
#[async_trait]
pub trait MessageSubscriberExt: MessageSubscriber {
    /// Adds a consumer with default options. `handler` is usually an async closure of a
    /// [`Delivery`](super::Delivery).
    ///
    /// # Errors
    ///
    /// Returns an error as [`MessageSubscriber::subscribe`] does, and if the pattern is invalid.
    async fn on<H: DeliveryHandler>(&self, pattern: &str, name: &str, handler: H) -> Result<Subscription, BusError> {
        self.on_with(pattern, name, SubscribeOptions::new(), handler).await
    }

    /// Adds a consumer with these options.
    ///
    /// # Errors
    ///
    /// Returns an error as [`MessageSubscriberExt::on`] does.
    async fn on_with<H: DeliveryHandler>(
        &self,
        pattern: &str,
        name: &str,
        options: SubscribeOptions,
        handler: H,
    ) -> Result<Subscription, BusError> {
        let pattern = TopicPattern::new(pattern)?;
        self.subscribe(pattern, name, options, Arc::new(handler)).await
    }
}

impl<S: MessageSubscriber + ?Sized> MessageSubscriberExt for S {}
