//! How a subscription is served.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::MessageEnvelope;

/// How a subscription is served: by default one message at a time, with up to four attempts.
///
/// ```
/// # use rockbot_core::messaging::{PartitionBy, SubscribeOptions};
/// let options = SubscribeOptions::new()
///     .with_concurrency(8)
///     .with_partition_by(PartitionBy::header("session"));
/// # assert_eq!(options.concurrency, 8);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// How many messages this consumer handles at once: 1 by default, never less.
    pub concurrency: usize,
    /// Which messages are handled one after the other, in the order in which they came. `None`, the default:
    /// no message waits for another one.
    pub partition_by: Option<PartitionBy>,
    /// Whether the subscription is worth nothing without its consumers: what it holds is thrown away when the
    /// last one leaves. `false` by default; then a bus keeps it (a broker) or makes dead letters of it.
    pub ephemeral: bool,
    /// How often and when a message is delivered again.
    pub retry: RetryPolicy,
    /// How many messages the subscription holds that are not done: waiting, being handled, waiting for another
    /// attempt. 1024 by default, never less than 1. A broker that keeps messages on disk may hold more.
    pub capacity: usize,
    /// What a publisher meets when the subscription holds that many.
    pub when_full: WhenFull,
}

/// What a publisher meets when a subscription is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// It waits for room, up to the bus's time limit.
    #[default]
    Wait,
    /// It gets [`BusError::QueueFull`](super::BusError::QueueFull) at once.
    Reject,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            concurrency: 1,
            partition_by: None,
            ephemeral: false,
            retry: RetryPolicy::default(),
            capacity: 1024,
            when_full: WhenFull::default(),
        }
    }
}

impl SubscribeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handling up to `concurrency` messages at once.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Handling the messages of one partition in order.
    #[must_use]
    pub fn with_partition_by(mut self, partition_by: PartitionBy) -> Self {
        self.partition_by = Some(partition_by);
        self
    }

    /// Throwing everything away when the last consumer leaves.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// Delivering again as `retry` says.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Holding up to `capacity` messages.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Treating publishers as `when_full` says once it is full.
    #[must_use]
    pub fn with_when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Whether a consumer with `other` can join a subscription with these options: everything but the
    /// concurrency belongs to the subscription and must be the same.
    pub fn can_share(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.concurrency = self.concurrency;
        *self == other
    }
}

/// Which messages are handled one after the other: those for which a function returns the same key.
#[derive(Clone)]
pub struct PartitionBy {
    name: Arc<str>,
    key: PartitionKey,
}

type PartitionKey = Arc<dyn Fn(&MessageEnvelope) -> Option<String> + Send + Sync>;

impl PartitionBy {
    /// Messages with the same key; those without one wait for nobody. `name` says what the key is: two rules of
    /// one name are taken for the same rule. The function runs in the publisher and must not panic.
    pub fn new(name: &str, key: impl Fn(&MessageEnvelope) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            key: Arc::new(key),
        }
    }

    /// Messages with the same value in the header `name`.
    pub fn header(name: &'static str) -> Self {
        Self::new(name, |envelope| envelope.headers.get(name).cloned())
    }

    /// The key of a message, if it has one.
    pub fn key(&self, envelope: &MessageEnvelope) -> Option<String> {
        (self.key)(envelope)
    }
}

impl PartialEq for PartitionBy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PartitionBy {}

impl fmt::Debug for PartitionBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartitionBy").field(&self.name).finish()
    }
}

/// How often and when a message is delivered again: by default up to four attempts in all, 200 ms after the
/// first, then twice as long each time, up to 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many deliveries a message gets before it is a dead letter, the first one included.
    pub max_attempts: u32,
    /// The time between the first two attempts.
    pub first_delay: Duration,
    /// The longest time between two attempts.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// One attempt only.
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// How long to wait after attempt number `attempt` (from 1) failed. `None`: that was the last one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use rockbot_core::messaging::RetryPolicy;
    /// let policy = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
    /// assert_eq!(policy.delay_after(1), Some(Duration::from_millis(200)));
    /// assert_eq!(policy.delay_after(2), Some(Duration::from_millis(400)));
    /// assert_eq!(policy.delay_after(3), None);
    /// ```
    pub fn delay_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let factor = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.first_delay.saturating_mul(factor).min(self.max_delay))
    }
}
