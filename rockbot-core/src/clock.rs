//! Wall-clock time behind a trait, so that tests can set it.
//!
//! Only timestamps that are stored or shown come from a [`Clock`]. Delays and deadlines use tokio's timers,
//! which follow the monotonic clock and which tests can pause.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time on the wall clock, in milliseconds since 1970-01-01 UTC.
///
/// Serialized as that number; [`rfc3339`](crate::rfc3339) is the text form for documents that other programs read.
/// The whole range of `u64` is valid, which is more than any calendar covers, so arithmetic saturates and
/// never fails.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::Timestamp;
///
/// let start = Timestamp::from_millis(1_000);
/// let end = start.after(Duration::from_secs(2));
/// assert_eq!(end.since(start), Duration::from_secs(2));
/// assert_eq!(start.since(end), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates the timestamp `millis` milliseconds after 1970-01-01 UTC.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970-01-01 UTC.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later, as after a step of the clock back.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the timestamp `duration` later, or the greatest one if that overflows.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        )
    }
}

/// A source of wall-clock time.
///
/// Hosts use [`SystemClock`]; tests use a clock that they set, such as `testing::ManualClock`. The time may go
/// backwards between two calls, because operators and NTP step the system clock.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

impl<Shared: Clock + ?Sized> Clock for std::sync::Arc<Shared> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The operating system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
