//! A delivery of a message to a handler, and the dispositions that end it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::MessageEnvelope;
use crate::context::Trust;
use crate::shared::share;

/// One delivery of a message to one subscription. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The topic of the message's publication.
    pub topic: Arc<str>,
    /// The message, shared with its other receivers.
    pub envelope: Arc<MessageEnvelope>,
    /// The number of this delivery to the subscription, counted from 1.
    pub attempt: u32,
    /// The trust of the channel in the sender. It is set by the bus's configuration, never by the
    /// message.
    pub trust: Trust,
}

impl Delivery {
    /// Creates the first delivery of `envelope`, from a sender that the channel does not trust.
    pub fn new(topic: impl Into<Arc<str>>, envelope: impl Into<Arc<MessageEnvelope>>) -> Self {
        Self {
            topic: topic.into(),
            envelope: envelope.into(),
            attempt: 1,
            trust: Trust::Untrusted,
        }
    }

    /// Sets the number of this delivery to the subscription, counted from 1.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the trust of the channel in the sender. Default [`Trust::Untrusted`].
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }
}

/// The outcome of a delivery, which the handler chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The message is handled.
    Ack,
    /// The bus delivers the message again after a delay, as often as the
    /// [`RetryPolicy`](super::RetryPolicy) allows.
    Retry {
        /// The reason, for the dead letter that the message may become.
        reason: String,
    },
    /// The message can never be handled; the bus keeps it as a dead letter.
    DeadLetter {
        /// The reason.
        reason: String,
    },
}

impl Disposition {
    /// Creates a [`Disposition::Retry`] because of `reason`.
    pub fn retry(reason: impl fmt::Display) -> Self {
        Self::Retry {
            reason: reason.to_string(),
        }
    }

    /// Creates a [`Disposition::DeadLetter`] because of `reason`.
    pub fn dead_letter(reason: impl fmt::Display) -> Self {
        Self::DeadLetter {
            reason: reason.to_string(),
        }
    }
}

/// A handler of a subscription's messages. An async closure `|delivery: Delivery| async { … }` is
/// one.
///
/// A handler may get a message more than once: after [`Disposition::Retry`], and after its
/// process died. A panic counts as a [`Disposition::Retry`].
#[async_trait]
pub trait DeliveryHandler: Send + Sync + 'static {
    /// Handles one delivery.
    async fn handle(&self, delivery: Delivery) -> Disposition;
}

share! {
    DeliveryHandler {
        async handle(delivery: Delivery) -> Disposition;
    }
}

#[async_trait]
impl<F, Fut> DeliveryHandler for F
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Disposition> + Send + 'static,
{
    async fn handle(&self, delivery: Delivery) -> Disposition {
        self(delivery).await
    }
}
