//! The errors of a bus.

use std::time::Duration;

use super::{PayloadError, TopicError};
use crate::BoxError;

/// An error of publishing or subscribing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The topic or pattern is invalid.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The payload cannot be serialized.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The payload's type has no topic of its own.
    #[error("a `{0}` message has no topic of its own: publish it under one")]
    NoTopic(&'static str),
    /// The message exceeds the maximum size of the bus.
    #[error("a message of {size} bytes is too large: this bus carries up to {limit}; send a reference instead")]
    TooLarge {
        /// The size of body and headers, in bytes.
        size: usize,
        /// The maximum size, in bytes.
        limit: usize,
    },
    /// A subscription is at its capacity. The message was delivered to no subscription.
    #[error("subscription `{subscription}` is full: publish again later, or raise its capacity or concurrency")]
    QueueFull {
        /// The name of the full subscription.
        subscription: String,
        /// The time that the publisher waited for capacity.
        waited: Duration,
    },
    /// The broker refused the message: a queue that it reaches is full, and set up to refuse further
    /// messages.
    #[error("the broker refused a message under `{0}`: a queue of that topic is full; publish again later")]
    Rejected(String),
    /// The broker's protocol cannot carry a property of the message.
    #[error("the {property} of a message has {size} bytes, and this bus carries up to {limit}: shorten it")]
    PropertyTooLong {
        /// The property.
        property: String,
        /// Its size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The name is in use for a subscription with another pattern or other options.
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
        /// The attempted operation, and the remedy.
        context: String,
        /// The error of the broker's client.
        source: BoxError,
    },
}

impl BusError {
    /// Returns `true` if the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::QueueFull { .. } | Self::Rejected(_) | Self::Provider { .. })
    }
}
