//! The options of a subscription.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{MessageEnvelope, headers};

/// The options of a subscription. By default it handles one message at a time, with up to four
/// attempts.
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
    /// Maximum number of messages that this consumer handles concurrently. Default 1; 0 counts as 1.
    pub concurrency: usize,
    /// The partition of a message. Messages of one partition are handled one after the other, in
    /// order. Default `None`: no message waits for another.
    pub partition_by: Option<PartitionBy>,
    /// `true` if the subscription ends with its last consumer, and drops the messages that it holds.
    /// Default `false`: a broker keeps them, an in-process bus turns them into dead letters.
    pub ephemeral: bool,
    /// The policy of redelivery after a failed attempt.
    pub retry: RetryPolicy,
    /// Maximum number of unfinished messages that the subscription holds: waiting, being handled, or
    /// waiting for another attempt. Default 1024; 0 counts as 1. A broker that keeps messages on disk
    /// may hold more.
    pub capacity: usize,
    /// The backpressure on a publisher when the subscription is at its capacity.
    pub when_full: WhenFull,
}

/// The backpressure on a publisher when a subscription is at its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// The publisher waits for capacity, up to the time limit of the bus. The default.
    #[default]
    Wait,
    /// The publisher gets [`BusError::QueueFull`](super::BusError::QueueFull) immediately.
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
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of messages that are handled concurrently.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets the partition of messages. The messages of a partition are handled in order.
    #[must_use]
    pub fn with_partition_by(mut self, partition_by: PartitionBy) -> Self {
        self.partition_by = Some(partition_by);
        self
    }

    /// Ends the subscription with its last consumer, and drops the messages that it holds.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the maximum number of unfinished messages.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets the backpressure on publishers at full capacity.
    #[must_use]
    pub fn with_when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Returns `true` if a consumer with `other` can join a subscription with these options. All
    /// options but the concurrency belong to the subscription and must be equal.
    pub fn can_share(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.concurrency = self.concurrency;
        *self == other
    }
}

/// A partition rule: messages with the same key are handled one after the other. The rule's
/// function returns the key of a message.
#[derive(Clone)]
pub struct PartitionBy {
    name: Arc<str>,
    key: PartitionKey,
}

type PartitionKey = Arc<dyn Fn(&MessageEnvelope) -> Option<String> + Send + Sync>;

impl PartitionBy {
    /// Creates a rule from a function. Messages without a key wait for no other message.
    ///
    /// `name` identifies the rule: two rules with the same name are considered equal. The function
    /// runs in the publisher and must not panic.
    pub fn new(name: &str, key: impl Fn(&MessageEnvelope) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            key: Arc::new(key),
        }
    }

    /// Creates a rule that partitions by the value of the header `name`.
    pub fn header(name: &'static str) -> Self {
        Self::new(name, |envelope| envelope.headers.get(name).cloned())
    }

    /// Creates a rule that partitions by the [key](MessageEnvelope::with_partition_key) that the
    /// publisher set.
    pub fn partition_key() -> Self {
        Self::header(headers::PARTITION_KEY)
    }

    /// Returns the key of a message, if it has one.
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

/// A retry policy: exponential back-off. By default up to four attempts, the second 200 ms after
/// the first, each further delay twice as long, up to 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of deliveries, the first included, before a message becomes a dead letter.
    /// Default 4.
    pub max_attempts: u32,
    /// Delay between the first two attempts. Default 200 ms.
    pub first_delay: Duration,
    /// Maximum delay between two attempts. Default 30 s.
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
    /// Creates a policy with a single attempt.
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// Sets the maximum number of deliveries, the first included, before a message becomes a dead
    /// letter. Default 4.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the delay between the first two attempts. Default 200 ms.
    #[must_use]
    pub fn with_first_delay(mut self, first_delay: Duration) -> Self {
        self.first_delay = first_delay;
        self
    }

    /// Sets the maximum delay between two attempts. Default 30 s.
    #[must_use]
    pub fn with_max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = max_delay;
        self
    }

    /// Returns the delay after attempt number `attempt` (from 1) failed, or `None` if it was the last.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use rockbot_core::messaging::RetryPolicy;
    /// let policy = RetryPolicy::default().with_max_attempts(3);
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
