//! The limits of a gateway, as plain data: how many calls run and wait, and how long they take.

use std::time::Duration;

use rockbot_core::chat::ModelTier;

/// The limits of [`Permits`](crate::Permits): how many calls run and wait, and for how long.
///
/// A call waits while its tier, or all tiers together, have no free permit. Calls of one priority
/// are served first come, first served. Priorities age: a call counts as having arrived one head
/// start later for each step that its priority is below a user's (scheduled, subagent, dream). So
/// a user's call goes first unless the other call has waited that much longer, and no call
/// starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitLimits {
    /// Maximum number of concurrent calls of Low. Default 8; 0 counts as 1, here and below.
    pub low: usize,
    /// Maximum number of concurrent calls of Balanced. Default 4.
    pub balanced: usize,
    /// Maximum number of concurrent calls of High. Default 2.
    pub high: usize,
    /// Maximum number of concurrent calls of all tiers together. No limit by default.
    pub total: usize,
    /// Maximum number of waiting calls. If one more arrives, the last in order is rejected. Default
    /// 1000.
    pub max_waiting: usize,
    /// Maximum time that a call waits. Default 5 minutes.
    pub max_wait: Duration,
    /// Extra time that a call must have waited to go before a call of the next higher priority.
    /// Default 30 seconds.
    pub head_start: Duration,
}

impl Default for PermitLimits {
    fn default() -> Self {
        Self {
            low: 8,
            balanced: 4,
            high: 2,
            total: usize::MAX,
            max_waiting: 1000,
            max_wait: Duration::from_secs(300),
            head_start: Duration::from_secs(30),
        }
    }
}

impl PermitLimits {
    /// Returns limits of one call at a time, whatever its tier.
    pub fn serialized() -> Self {
        Self {
            total: 1,
            ..Self::default()
        }
    }

    /// Sets the maximum number of concurrent calls of Low. Default 8; 0 counts as 1, here and below.
    #[must_use]
    pub fn with_low(mut self, low: usize) -> Self {
        self.low = low;
        self
    }

    /// Sets the maximum number of concurrent calls of Balanced. Default 4.
    #[must_use]
    pub fn with_balanced(mut self, balanced: usize) -> Self {
        self.balanced = balanced;
        self
    }

    /// Sets the maximum number of concurrent calls of High. Default 2.
    #[must_use]
    pub fn with_high(mut self, high: usize) -> Self {
        self.high = high;
        self
    }

    /// Sets the maximum number of concurrent calls of all tiers together.
    #[must_use]
    pub fn with_total(mut self, total: usize) -> Self {
        self.total = total;
        self
    }

    /// Sets the maximum number of waiting calls. Default 1000.
    #[must_use]
    pub fn with_max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// Sets the maximum time that a call waits. Default 5 minutes.
    #[must_use]
    pub fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets the extra time that a call must have waited to go before a call of the next higher
    /// priority. Default 30 seconds.
    #[must_use]
    pub fn with_head_start(mut self, head_start: Duration) -> Self {
        self.head_start = head_start;
        self
    }

    pub(crate) fn of(&self, tier: ModelTier) -> usize {
        let limit = match tier {
            ModelTier::Low => self.low,
            ModelTier::Balanced => self.balanced,
            ModelTier::High => self.high,
        };
        limit.max(1)
    }
}

/// A layer that ends calls that take too long, with
/// [`ChatErrorKind::TimedOut`](rockbot_core::chat::ChatErrorKind::TimedOut). A limit of zero is
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeLimit {
    /// Limit on the whole answer. Default 10 minutes.
    pub call: Duration,
    /// Limit on the wait for the first piece of a streamed answer. None by default: reasoning models
    /// pause first.
    pub first: Duration,
    /// Limit on the pause between two pieces of a streamed answer. Default 2 minutes.
    pub pause: Duration,
}

impl Default for TimeLimit {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(600),
            first: Duration::ZERO,
            pause: Duration::from_secs(120),
        }
    }
}

impl TimeLimit {
    /// Returns a limit on the whole answer, and none on pieces of it.
    pub fn of(call: Duration) -> Self {
        Self {
            call,
            first: Duration::ZERO,
            pause: Duration::ZERO,
        }
    }

    /// Sets the limit on the whole answer. Default 10 minutes.
    #[must_use]
    pub fn with_call(mut self, call: Duration) -> Self {
        self.call = call;
        self
    }

    /// Sets the limit on the wait for the first piece of a streamed answer.
    #[must_use]
    pub fn with_first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// Sets the limit on the pause between two pieces of a streamed answer. Default 2 minutes.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}
