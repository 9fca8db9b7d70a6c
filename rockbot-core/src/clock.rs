//! Wall-clock time behind a trait, so that tests can set it.
//!
//! Timestamps that are stored or shown come from a [`Clock`], and so does a wait for one:
//! [`Clock::sleep_until`]. Delays and deadlines use tokio's timers, which follow the monotonic
//! clock and which tests can pause.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

/// A point in time on the wall clock, in milliseconds since 1970-01-01 UTC.
///
/// Serialized as that number; [`rfc3339`](crate::rfc3339) is the text form for documents that
/// other programs read. The whole range of `u64` is valid, which is more than any calendar
/// covers, so arithmetic saturates and never fails.
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

/// Maximum interval between two looks at the clock in [`Clock::sleep_until`].
const MAX_SLICE: Duration = Duration::from_secs(30);

/// A source of wall-clock time.
///
/// Hosts use [`SystemClock`]; tests use a clock that they set, such as `testing::ManualClock`.
/// The time may go backwards between two calls, because operators and NTP step the system clock.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Waits until the clock is at or past `until`; returns at once if it is.
    ///
    /// A timer alone does not do that: it follows the monotonic clock, which does not see that the
    /// wall clock is stepped, and on Linux stands still while the machine sleeps. So the provided
    /// method looks at the clock again every 30 seconds at most. A step forward is noticed that late;
    /// after a step back it goes on waiting. A clock that knows when it changes overrides it, as
    /// `testing::ManualClock` does, and a clock that wraps another forwards the call.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future has no effect on the clock.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use rockbot_core::{Clock, SystemClock, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    /// let until = clock.now().after(Duration::from_millis(5));
    /// clock.sleep_until(until).await;
    /// assert!(clock.now() >= until);
    ///
    /// // It is past already.
    /// clock.sleep_until(Timestamp::default()).await;
    /// # }
    /// ```
    async fn sleep_until(&self, until: Timestamp) {
        loop {
            let left = until.since(self.now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(MAX_SLICE)).await;
        }
    }
}

#[async_trait]
impl<Shared: Clock + ?Sized> Clock for std::sync::Arc<Shared> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        (**self).sleep_until(until).await;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::time::{Instant, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    /// A wall clock that runs as tokio's does, but for the steps that a test makes.
    #[derive(Debug)]
    struct SteppedClock {
        begun: Instant,
        steps: AtomicI64,
    }

    impl SteppedClock {
        fn new() -> Arc<Self> {
            let begun = Instant::now();
            let steps = AtomicI64::new(0);
            Arc::new(Self { begun, steps })
        }

        /// Steps the clock forward by that many seconds, or back.
        fn step(&self, seconds: i64) {
            self.steps.fetch_add(1_000 * seconds, Ordering::SeqCst);
        }
    }

    impl Clock for SteppedClock {
        fn now(&self) -> Timestamp {
            let steps = self.steps.load(Ordering::SeqCst);
            let stepped = START.as_millis().saturating_add_signed(steps);
            Timestamp::from_millis(stepped).after(self.begun.elapsed())
        }
    }

    /// Seconds for which a sleep of 100 seconds lasts while the clock is stepped by `steps`: after so
    /// many seconds, by so many.
    async fn slept(steps: &[(u64, i64)]) -> u64 {
        let clock = SteppedClock::new();
        let sleeper = clock.clone();
        let begun = Instant::now();
        let sleep_of_100 = tokio::spawn(async move {
            let until = START.after(100 * SECOND);
            sleeper.sleep_until(until).await;
            assert!(sleeper.now() >= until);
            begun.elapsed().as_secs()
        });
        for (after, by) in steps {
            sleep(Duration::from_secs(*after)).await;
            clock.step(*by);
        }
        sleep_of_100.await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_at_its_time_of_the_wall_clock() {
        assert_eq!(slept(&[]).await, 100);
        assert_eq!(slept(&[(10, 50)]).await, 50, "a step forward");
        assert_eq!(slept(&[(10, -40)]).await, 140, "a step back");
        assert_eq!(slept(&[(10, 50), (10, -50)]).await, 100, "forward and back again");
        assert_eq!(slept(&[(10, -3_600), (10, 3_600)]).await, 100, "back and forward again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_past_the_time_is_noticed_within_a_slice() {
        assert_eq!(slept(&[(10, 3_600)]).await, 30, "a machine that slept an hour");
        assert_eq!(slept(&[(95, 3_600)]).await, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_in_the_past_is_over_and_the_last_one_is_far() {
        let (clock, begun): (Arc<dyn Clock>, _) = (SteppedClock::new(), Instant::now());
        clock.sleep_until(Timestamp::default()).await;
        clock.sleep_until(clock.now()).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let year = SECOND * 365 * 24 * 60 * 60;
        let last = Timestamp::from_millis(u64::MAX);
        timeout(year / 100, clock.sleep_until(last)).await.unwrap_err();
    }
}
