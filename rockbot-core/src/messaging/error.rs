//! What can go wrong with a bus.

use std::time::Duration;

use super::{PayloadError, TopicError};
use crate::BoxError;

/// A bus that refused, or cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The topic or pattern is not one.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The payload cannot be written.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The payload's type has no topic of its own.
    #[error("a `{0}` message has no topic of its own: publish it under one")]
    NoTopic(&'static str),
    /// The message is larger than the bus carries.
    #[error("a message of {size} bytes is too large: this bus carries up to {limit}; send a reference instead")]
    TooLarge {
        /// The bytes of its body and headers.
        size: usize,
        /// The most that the bus carries.
        limit: usize,
    },
    /// A subscription holds as many messages as it may. The message was delivered to nobody.
    #[error("subscription `{subscription}` is full: publish again later, or raise its capacity or concurrency")]
    QueueFull {
        /// The subscription.
        subscription: String,
        /// How long the publisher waited for room.
        waited: Duration,
    },
    /// The name is in use for another subscription.
    #[error(
        "subscription `{0}` exists with another pattern or other options: consumers of one name must agree, or use another name"
    )]
    Conflict(String),
    /// The bus was closed.
    #[error(
        "the bus is closed: a host closes its bus when it stops; make a new one, or share it with `.shared_bus(…)`"
    )]
    Closed,
    /// The broker, or the connection to it, failed.
    #[error("{context}")]
    Provider {
        /// What was tried, and what to do.
        context: String,
        /// What the broker's client said.
        source: BoxError,
    },
}

impl BusError {
    /// Whether the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::QueueFull { .. } | Self::Provider { .. })
    }
}
