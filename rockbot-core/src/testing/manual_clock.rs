//! A clock that stands still until a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Clock, Timestamp};

/// A [`Clock`] that tests set and advance. Copies share the time.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::testing::ManualClock;
/// use rockbot_core::Clock;
///
/// let clock = ManualClock::default();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(before), Duration::from_secs(60));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicU64>);

/// 2026-01-01 00:00:00 UTC, in milliseconds.
const START: u64 = 1_767_225_600_000;

impl Default for ManualClock {
    /// Creates a clock at 2026-01-01 00:00:00 UTC.
    fn default() -> Self {
        Self::new(Timestamp::from_millis(START))
    }
}

impl ManualClock {
    /// Creates a clock at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(now.as_millis())))
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Sets the clock forward by `time`.
    pub fn advance(&self, time: Duration) {
        self.set(self.now().after(time));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
