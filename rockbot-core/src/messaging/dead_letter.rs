//! Messages that could not be dealt with, kept for whoever looks after the host.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{BusError, MessageEnvelope};
use crate::{MessageId, Timestamp};

/// Where a bus keeps the messages that could not be dealt with.
#[async_trait]
pub trait DeadLetters: fmt::Debug + Send + Sync + 'static {
    /// The oldest `limit` dead letters, oldest first. They stay where they are.
    ///
    /// # Errors
    ///
    /// Fails when they cannot be read.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError>;

    /// Takes out the oldest dead letter of a subscription with this message id: to publish it again, or to be
    /// rid of it. `None` when there is none.
    ///
    /// # Errors
    ///
    /// Fails when they cannot be read or written.
    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError>;
}

/// A message that could not be dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Which subscription could not deal with it.
    pub subscription: Arc<str>,
    /// Under which topic it was published.
    pub topic: Arc<str>,
    /// The message.
    pub envelope: Arc<MessageEnvelope>,
    /// Why it was given up.
    pub reason: DeadLetterReason,
    /// How often it was delivered.
    pub attempts: u32,
    /// What the handler said the last time; empty when it never ran.
    pub last_error: String,
    /// When it was given up.
    pub at: Timestamp,
}

/// Why a message was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The handler said that it can never deal with it.
    Rejected,
    /// The last attempt failed.
    Exhausted,
    /// The last consumer of the subscription left.
    Unsubscribed,
    /// The bus was closed before it was done.
    Closed,
}
