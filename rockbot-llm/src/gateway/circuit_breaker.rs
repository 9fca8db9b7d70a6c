//! Whether a model that failed is asked again: pure bookkeeping.

use std::time::Duration;

use rockbot_core::chat::ChatErrorKind;
use tokio::time::Instant;

/// When a model is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// After so many failures in a row. 3 by default. A key that is refused, credit that is used up and a model that
    /// is not there count at once.
    pub failure_threshold: u32,
    /// For so long; then one call finds out whether it works again. 5 minutes by default.
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

/// The state of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BreakerState {
    failures: u32,
    /// Until when the model is left alone, if it is.
    open_until: Option<Instant>,
    /// A call finds out whether it works again.
    is_probe_in_flight: bool,
}

impl BreakerState {
    /// Whether the model may be asked now. Once it has cooled down, one call may, until its verdict.
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

    /// The model works.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// The model failed.
    pub(super) fn record_failure(&mut self, kind: ChatErrorKind, now: Instant, settings: CircuitBreaker) {
        self.failures = self.failures.saturating_add(1);
        if lasts(kind) || self.is_probe_in_flight || self.failures >= settings.failure_threshold {
            self.open_until = Some(now + settings.open_for);
        }
        self.is_probe_in_flight = false;
    }

    /// The call ended without telling anything about the model.
    pub(super) fn release_probe(&mut self) {
        self.is_probe_in_flight = false;
    }

    /// When the model may be asked again: the earlier, the better to ask it when all have to cool.
    pub(super) fn open_until(&self) -> Option<Instant> {
        self.open_until
    }
}

/// Whether a failure is of the model, and not of the request or of its caller.
pub(super) fn is_of_the_model(kind: ChatErrorKind) -> bool {
    kind.other_model_helps() && kind != ChatErrorKind::ContentFiltered
}

/// Whether the next call would fail as well.
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

    /// Which of these seconds the breaker would admit a call at, after the failures at their seconds.
    #[track_caller]
    fn check(failures: &[(u64, ChatErrorKind)], at: u64, expected: bool) {
        let (start, mut breaker) = (Instant::now(), BreakerState::default());
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
    fn a_model_cools_down_after_failures_in_a_row() {
        check(&[(0, Overloaded)], 0, true);
        check(&[(0, Overloaded), (1, TimedOut)], 1, false);
        check(&[(0, Overloaded), (1, TimedOut)], 10, false);
        check(&[(0, Overloaded), (1, TimedOut)], 11, true);
        check(&[(0, Auth)], 9, false);
        check(&[(0, QuotaExceeded)], 9, false);
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
