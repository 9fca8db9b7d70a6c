//! Dead letters: messages that could not be handled, kept for the operator.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{BusError, Delivery, MessageEnvelope};
use crate::shared::share;
use crate::{MessageId, Timestamp};

/// The store of a bus's dead letters.
#[async_trait]
pub trait DeadLetters: fmt::Debug + Send + Sync + 'static {
    /// Returns the oldest `limit` dead letters, oldest first, without removing them.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError>;

    /// Removes and returns the oldest dead letter of a subscription with this message id, to
    /// publish it again or to discard it. Returns `None` if there is no such dead letter.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read or written.
    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError>;
}

share! {
    DeadLetters {
        async dead_letters(limit: usize) -> Result<Vec<DeadLetter>, BusError>;
        async take_dead_letter<'a, 'b>(subscription: &'a str, message: &'b MessageId) -> Result<Option<DeadLetter>, BusError>;
    }
}

/// A message that could not be handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeadLetter {
    /// The subscription that could not handle it.
    pub subscription: Arc<str>,
    /// The topic of its publication.
    pub topic: Arc<str>,
    /// The message.
    pub envelope: Arc<MessageEnvelope>,
    /// The reason why the bus stopped delivering it.
    pub reason: DeadLetterReason,
    /// The number of deliveries.
    pub attempts: u32,
    /// The error of the last delivery, or an empty text if the handler never ran. For a handler
    /// that panicked it is the text of the panic. Operators and other programs read it as well, so
    /// a panic's message is no place for secrets.
    pub last_error: String,
    /// The time when it became a dead letter.
    pub at: Timestamp,
    /// The number of headers of the message that the broker has no room for beside the notes of a
    /// dead letter, and that are lost. Default: 0.
    #[serde(default)]
    pub omitted_headers: u32,
}

impl DeadLetter {
    /// Creates the dead letter of a message whose last delivery to `subscription` was `delivery`.
    pub fn new(subscription: impl Into<Arc<str>>, delivery: Delivery, reason: DeadLetterReason, at: Timestamp) -> Self {
        Self {
            subscription: subscription.into(),
            topic: delivery.topic,
            envelope: delivery.envelope,
            reason,
            attempts: delivery.attempt,
            last_error: String::new(),
            at,
            omitted_headers: 0,
        }
    }

    /// Sets the error of the last delivery. Default: an empty text, since the handler never ran.
    #[must_use]
    pub fn with_last_error(mut self, last_error: impl Into<String>) -> Self {
        self.last_error = last_error.into();
        self
    }

    /// Sets the number of headers that the message has lost. Default: 0.
    #[must_use]
    pub fn with_omitted_headers(mut self, count: u32) -> Self {
        self.omitted_headers = count;
        self
    }
}

/// The reason why a message became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The handler reported that it can never handle the message.
    Rejected,
    /// The last attempt of the retry policy failed.
    Exhausted,
    /// The last consumer of the subscription left.
    Unsubscribed,
    /// The bus was closed before the message was handled.
    Closed,
}
