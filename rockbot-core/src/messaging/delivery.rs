//! A message as a handler gets it, and how the handler ends it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::MessageEnvelope;
use crate::context::Trust;

/// One delivery of a message to one subscription. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Under which topic it was published.
    pub topic: Arc<str>,
    /// The message, shared with all its other receivers.
    pub envelope: Arc<MessageEnvelope>,
    /// How often this subscription has been given the message, from 1.
    pub attempt: u32,
    /// How far the channel vouches for the sender. It comes from the bus's configuration, never from the message.
    pub trust: Trust,
}

/// How a handler ends a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The message is dealt with.
    Ack,
    /// Deliver it again, a little later and not for ever.
    Retry {
        /// Why, for whoever inspects the dead letter that it may become.
        reason: String,
    },
    /// It can never be dealt with: keep it as a dead letter.
    DeadLetter {
        /// Why.
        reason: String,
    },
}

impl Disposition {
    /// Deliver it again, because of `reason`.
    pub fn retry(reason: impl fmt::Display) -> Self {
        Self::Retry {
            reason: reason.to_string(),
        }
    }

    /// Keep it as a dead letter, because of `reason`.
    pub fn dead_letter(reason: impl fmt::Display) -> Self {
        Self::DeadLetter {
            reason: reason.to_string(),
        }
    }
}

/// Receives the messages of a subscription. An async closure `|delivery: Delivery| async { … }` is one.
///
/// A handler may be given a message more than once: after [`Disposition::Retry`], and after its process died.
/// A handler that panics is given the message again, as if it had asked for it.
#[async_trait]
pub trait DeliveryHandler: Send + Sync + 'static {
    /// Deals with one delivery.
    async fn handle(&self, delivery: Delivery) -> Disposition;
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
