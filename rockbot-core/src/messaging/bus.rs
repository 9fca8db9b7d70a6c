//! What carries messages between programs, or between the parts of one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{BusError, DeliveryHandler, Message, MessageEnvelope, SubscribeOptions, Subscription, TopicPattern};

/// Sends messages.
#[async_trait]
pub trait MessagePublisher: fmt::Debug + Send + Sync + 'static {
    /// Publishes a message under `topic`. Every subscription whose pattern matches gets a copy. Returns once
    /// all of them hold it; a bus with a broker returns once the broker has it.
    ///
    /// # Errors
    ///
    /// Fails when the topic is not one, the message is too large, a subscription is full, or the bus is closed
    /// or out of reach. Whether somebody got the message is then not known, unless the error says so: publish it
    /// again under the same message id.
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError>;
}

/// Whom a message reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// At least one subscription.
    Subscribers,
    /// No subscription: nobody will ever see it.
    NoSubscribers,
    /// The bus has it, and cannot tell who subscribes.
    Unknown,
}

/// Receives messages.
#[async_trait]
pub trait MessageSubscriber: fmt::Debug + Send + Sync + 'static {
    /// Adds a consumer to the subscription `name`. Consumers of one name share its messages, each message going
    /// to one of them; different names get a copy each.
    ///
    /// # Errors
    ///
    /// Fails with [`BusError::Conflict`] when the name is in use with another pattern or other options, and
    /// when the bus is closed or out of reach.
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError>;
}

/// A bus: messages go in, messages come out.
///
/// What every bus promises: a message is delivered at least once; within a subscription of concurrency 1, and
/// within a partition, messages are handled in the order in which they were published; a message that fails
/// does not hold up others outside its partition; nothing is given up silently.
#[async_trait]
pub trait Bus: MessagePublisher + MessageSubscriber {
    /// Lets the subscriptions finish what they hold, for at most `within`, then ends them all: handlers that
    /// still run are cancelled. Afterwards the bus takes nothing more; closing it again does nothing.
    ///
    /// Messages are taken until then, because handlers that finish have things to say: stop what brings in new
    /// work first. Called from a handler, it waits for itself until the time is up.
    async fn close(&self, within: Duration) -> CloseReport;
}

/// What closing a bus left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct CloseReport {
    /// How many messages were not dealt with. An in-process bus keeps them as dead letters, a broker delivers
    /// them again.
    pub unfinished: usize,
}

/// Conveniences of every publisher.
#[async_trait]
pub trait MessagePublisherExt: MessagePublisher {
    /// Publishes `payload` under its own topic, in the name of the program `source`.
    ///
    /// # Errors
    ///
    /// Fails as [`MessagePublisher::publish`] does, when the payload cannot be written, and when its type has
    /// no topic.
    async fn send<M: Message + Serialize + Sync>(&self, source: &str, payload: &M) -> Result<Reach, BusError> {
        let topic = M::TOPIC.ok_or(BusError::NoTopic(M::TYPE))?;
        let envelope = MessageEnvelope::of(payload)?.with_source(source);
        self.publish(topic, Arc::new(envelope)).await
    }

    /// Publishes `reply` as the answer to `request`: under its reply topic, with its correlation id. Reaches
    /// nobody when the request wants no answer.
    ///
    /// # Errors
    ///
    /// Fails as [`MessagePublisher::publish`] does. The reply topic is the sender's own choice: a handler that
    /// serves strangers checks it first.
    async fn reply(&self, request: &MessageEnvelope, reply: MessageEnvelope) -> Result<Reach, BusError> {
        let Some(topic) = &request.reply_to else {
            return Ok(Reach::NoSubscribers);
        };
        self.publish(topic, Arc::new(reply.in_reply_to(request))).await
    }
}

impl<P: MessagePublisher + ?Sized> MessagePublisherExt for P {}

/// Conveniences of every subscriber.
#[async_trait]
pub trait MessageSubscriberExt: MessageSubscriber {
    /// Adds a consumer with default options, written as an async closure.
    ///
    /// # Errors
    ///
    /// Fails as [`MessageSubscriber::subscribe`] does, and when the pattern is not one.
    async fn on<H: DeliveryHandler>(&self, pattern: &str, name: &str, handler: H) -> Result<Subscription, BusError> {
        self.on_with(pattern, name, SubscribeOptions::new(), handler).await
    }

    /// Adds a consumer, written as an async closure.
    ///
    /// # Errors
    ///
    /// Fails as [`MessageSubscriberExt::on`] does.
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
