//! A circuit breaker for one model and tier, as pure bookkeeping: closed, open, half-open.
//!
//! Time comes in as an argument and no lock is taken here, so every transition is tested without
//! a clock.

use std::time::Duration;

use rockbot_core::chat::ChatErrorKind;
use rockbot_core::support::deadline_after;
use tokio::time::Instant;

/// The settings of a circuit breaker: when it opens, and for how long.
///
/// While it is closed, calls go to the model. It opens after `failure_threshold` failures in a
/// row, and rejects calls for `open_for`. Then it is half-open: one call, the probe, goes to the
/// model, and the others are still rejected. If the probe succeeds, the breaker closes; if it
/// fails, the breaker opens again.
///
/// ```
/// use std::time::Duration;
/// use rockbot_llm::CircuitBreaker;
///
/// let eager = CircuitBreaker::default().with_failure_threshold(1);
/// assert_eq!(eager.open_for, Duration::from_secs(300));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitBreaker {
    /// Failures in a row after which the breaker opens. Default 3. It opens at once when a key is
    /// refused, credit is used up, or the model does not exist: the next call would fail as well.
    pub failure_threshold: u32,
    /// Time for which the breaker stays open before it admits a probe. Default 5 minutes.
    pub open_for: Duration,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            failure_threshold: 3,
            open_for: Duration::from_secs(300),
        }
    }
}

impl CircuitBreaker {
    /// Sets the failures in a row after which the breaker opens. Default 3.
    #[must_use]
    pub fn with_failure_threshold(mut self, failure_threshold: u32) -> Self {
        self.failure_threshold = failure_threshold;
        self
    }

    /// Sets the time for which the breaker stays open before it admits a probe. Default 5 minutes.
    #[must_use]
    pub fn with_open_for(mut self, open_for: Duration) -> Self {
        self.open_for = open_for;
        self
    }
}

/// The state of the breaker of one model.
///
/// Closed while `open_until` is `None`, open until then, half-open afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BreakerState {
    failures: u32,
    /// End of the open state; `None` while the breaker is closed.
    open_until: Option<Instant>,
    /// `true` while the probe of the half-open state is in flight.
    is_probe_in_flight: bool,
}

impl BreakerState {
    /// Returns `true` if the model may be asked now. In the half-open state this admits one probe,
    /// and no other call until its outcome is recorded or the probe is released.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        match self.open_until {
            None => true,
            Some(until) if now < until || self.is_probe_in_flight => false,
            Some(_) => {
                self.is_probe_in_flight = true;
                true
            }
        }
    }

    /// Records that the model answered: the breaker closes, and the count of failures starts again.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Records that the model failed, and opens the breaker if that was one failure too many.
    pub(super) fn record_failure(&mut self, kind: ChatErrorKind, now: Instant, settings: CircuitBreaker) {
        self.failures = self.failures.saturating_add(1);
        // A failed probe is enough: its model failed often enough to get here.
        if lasts(kind) || self.is_probe_in_flight || self.failures >= settings.failure_threshold {
            self.open_until = Some(deadline_after(now, settings.open_for));
        }
        self.is_probe_in_flight = false;
    }

    /// Releases the probe of a call that ended without an outcome, so that the next call may probe.
    pub(super) fn release_probe(&mut self) {
        self.is_probe_in_flight = false;
    }

    /// Returns the end of the open state. If all breakers are open, the model whose open state
    /// ends first is asked.
    pub(super) fn open_until(&self) -> Option<Instant> {
        self.open_until
    }
}

/// Returns `true` if a failure counts against the model, and not against the request or its caller.
pub(super) fn is_of_the_model(kind: ChatErrorKind) -> bool {
    kind.other_model_helps() && kind != ChatErrorKind::ContentFiltered
}

/// Returns `true` if the next call would fail as well.
fn lasts(kind: ChatErrorKind) -> bool {
    matches!(
        kind,
        ChatErrorKind::Auth | ChatErrorKind::QuotaExceeded | ChatErrorKind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use ChatErrorKind::*;

    use super::*;

    const SETTINGS: CircuitBreaker = CircuitBreaker {
        failure_threshold: 2,
        open_for: Duration::from_secs(10),
    };

    /// Checks whether the breaker would admit a call at, after the failures at their seconds.
    #[track_caller]
    fn check(failures: &[(u64, ChatErrorKind)], at: u64, expected: bool) {
        let start = Instant::now();
        let mut breaker = BreakerState::default();
        for (second, kind) in failures {
            breaker.record_failure(*kind, start + Duration::from_secs(*second), SETTINGS);
        }
        assert_eq!(
            breaker.admits(start + Duration::from_secs(at)),
            expected,
            "{failures:?} at {at}"
        );
    }

    #[test]
    fn a_breaker_opens_after_failures_in_a_row() {
        check(&[(0, Overloaded)], 0, true);
        check(&[(0, Overloaded), (1, TimedOut)], 1, false);
        check(&[(0, Overloaded), (1, TimedOut)], 10, false);
        check(&[(0, Overloaded), (1, TimedOut)], 11, true);
        check(&[(0, Auth)], 9, false);
        check(&[(0, QuotaExceeded)], 9, false);
    }

    #[test]
    fn a_breaker_may_stay_open_for_good() {
        let now = Instant::now();
        let mut breaker = BreakerState::default();
        let for_good = CircuitBreaker::default().with_open_for(Duration::MAX);
        breaker.record_failure(Auth, now, for_good);
        assert!(!breaker.admits(now + Duration::from_secs(60 * 60 * 24 * 365)));
    }

    #[test]
    fn one_call_finds_out_whether_it_works_again() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut breaker = BreakerState::default();
        breaker.record_failure(Auth, start, SETTINGS);
        assert!(breaker.admits(later(10)) && !breaker.admits(later(10)));
        breaker.release_probe();
        assert!(breaker.admits(later(11)));
        breaker.record_failure(Overloaded, later(12), SETTINGS);
        assert!(!breaker.admits(later(21)) && breaker.admits(later(22)));
        breaker.record_success();
        assert_eq!(breaker, BreakerState::default());
    }

    #[test]
    fn a_success_begins_a_new_count() {
        let mut breaker = BreakerState::default();
        for _ in 0..5 {
            breaker.record_failure(Overloaded, Instant::now(), SETTINGS);
            breaker.record_success();
        }
        assert!(breaker.admits(Instant::now()));
    }
}
