//! A clock that stands still until a test moves it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{Clock, Timestamp};

/// A [`Clock`] that tests set and advance. Copies share the time.
///
/// [`Clock::sleep_until`] waits for the test instead of a timer: it ends when the clock is set to
/// its time or past it. A sleep that was not polled while the clock was past its time goes on, as
/// if the clock had not been there.
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
pub struct ManualClock(Arc<watch::Sender<Timestamp>>);

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
        Self(Arc::new(watch::Sender::new(now)))
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.send_replace(now);
    }

    /// Sets the clock forward by `time`.
    pub fn advance(&self, time: Duration) {
        self.0.send_modify(|now| *now = now.after(time));
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    async fn sleep_until(&self, until: Timestamp) {
        // The sender lives as long as `self`, so the channel is never closed here.
        let _ = self.0.subscribe().wait_for(|now| *now >= until).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use tokio::task::yield_now;
    use tokio::time::Instant;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_when_the_test_sets_the_clock_to_its_time() {
        let clock = ManualClock::default();
        let begun = Instant::now();
        let shared: Arc<dyn Clock> = Arc::new(Arc::new(clock.clone()));
        let until = clock.now().after(60 * SECOND);
        let sleep = tokio::spawn(async move { shared.sleep_until(until).await });
        for seconds in [59, -120, 119] {
            yield_now().await;
            assert!(!sleep.is_finished(), "{:?} is left", until.since(clock.now()));
            let now = clock.now().as_millis().saturating_add_signed(1_000 * seconds);
            clock.set(Timestamp::from_millis(now));
        }
        clock.advance(2 * SECOND);
        sleep.await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_time_in_the_past_is_over_and_the_last_one_is_far() {
        let clock = ManualClock::default();
        assert_eq!(clock.sleep_until(clock.now()).now_or_never(), Some(()));
        assert_eq!(clock.sleep_until(Timestamp::default()).now_or_never(), Some(()));
        let last = Timestamp::from_millis(u64::MAX);
        assert_eq!(clock.sleep_until(last).now_or_never(), None);
        clock.advance(Duration::MAX);
        assert_eq!(clock.sleep_until(last).now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn each_of_many_sleeps_ends_at_its_own_time() {
        let clock = ManualClock::default();
        let start = clock.now();
        let sleeps = (1..=1_000).map(|second| {
            let clock = clock.clone();
            tokio::spawn(async move {
                clock.sleep_until(start.after(second * SECOND)).await;
                clock.now().since(start).as_secs()
            })
        });
        let sleeps: Vec<_> = sleeps.collect();
        for half in 1..=2 {
            yield_now().await;
            clock.advance(500 * SECOND);
            while sleeps.iter().filter(|sleep| sleep.is_finished()).count() < half * 500 {
                yield_now().await;
            }
        }
        let ended: Vec<_> = join_all(sleeps).await.into_iter().map(Result::unwrap).collect();
        let expected: Vec<_> = [500; 500].into_iter().chain([1_000; 500]).collect();
        assert_eq!(ended, expected);
    }
}
