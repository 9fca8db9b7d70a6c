//! The limits of a gateway, as plain data: how many calls run and wait, and how long they take.

use std::time::Duration;

use rockbot_core::chat::ModelTier;

/// How many calls may run, and how many may wait how long.
///
/// A call waits while its tier, or all tiers together, have no free permit. Calls of one priority go first come, first
/// served. A call counts as having come one head start later for each step that its priority is below a user's:
/// scheduled, subagent, dream. So a user's call goes first unless the other has waited that much longer, and no call
/// waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitLimits {
    /// Calls of Low at a time. 8 by default; 0 counts as 1, here and below.
    pub low: usize,
    /// Calls of Balanced at a time. 4 by default.
    pub balanced: usize,
    /// Calls of High at a time. 2 by default.
    pub high: usize,
    /// Calls of all tiers together at a time. No limit by default.
    pub total: usize,
    /// How many calls may wait. When one more comes, the last in order is refused. 1000 by default.
    pub max_waiting: usize,
    /// How long a call may wait. 5 minutes by default.
    pub max_wait: Duration,
    /// How much longer a call must have waited to go before one of the next higher priority. 30 seconds by default.
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
    /// One call at a time, whatever its tier.
    pub fn serialized() -> Self {
        Self {
            total: 1,
            ..Self::default()
        }
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

/// Ends calls that take too long, with [`ChatErrorKind::TimedOut`](rockbot_core::chat::ChatErrorKind::TimedOut). A limit of zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// For the whole answer. 10 minutes by default.
    pub call: Duration,
    /// For the first piece of a streamed answer. None by default: some models think before they speak.
    pub first: Duration,
    /// Between two pieces of a streamed answer. 2 minutes by default.
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
    /// This limit for the whole answer, and none for pieces of it.
    pub fn of(call: Duration) -> Self {
        Self {
            call,
            first: Duration::ZERO,
            pause: Duration::ZERO,
        }
    }
}
