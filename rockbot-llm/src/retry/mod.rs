//! Retries of model calls: the policy, and the loop that attempts a call again.
//!
//! Both the [`Retry`](crate::Retry) layer of a gateway and the wire clients use it. A call that a
//! retry layer attempts carries a [mark](Retried), and whatever is further in attempts it once,
//! so attempts never multiply.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatError, ChatErrorKind, ChatResponse, WatchedDeltas};
use rockbot_core::context::WaitReason;
use rockbot_core::support::loggable;
use tokio::time::{Instant, sleep};

/// The policy of retries: how many attempts a call gets, and how long it waits between them.
///
/// The wait before a further attempt is the time that the server asks for, up to
/// `max_retry_after`. If the server asks for none, the wait is exponential back-off with full
/// jitter, which spreads the load of many clients that failed together.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::chat::{ChatError, ChatErrorKind};
/// use rockbot_llm::RetryPolicy;
///
/// let policy = RetryPolicy::default().with_max_attempts(2).with_random(|| 1.0);
/// let busy = ChatError::new(ChatErrorKind::Overloaded, "busy");
/// assert_eq!(policy.delay_after(&busy, 1, None), Some(Duration::from_millis(500)));
/// assert_eq!(policy.delay_after(&busy, 2, None), None);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of attempts of a call, the first included. Default 4; 0 counts as 1.
    pub max_attempts: u32,
    /// Upper bound of the wait after the first attempt; it doubles with each further attempt. Default
    /// 500 ms.
    pub first_delay: Duration,
    /// Upper bound of the doubled wait. Default 16 seconds.
    pub max_delay: Duration,
    /// Upper bound of the wait that a server may ask for. Default 30 seconds.
    pub max_retry_after: Duration,
    /// Source of jitter, from 0 to 1. Random by default; a constant in tests.
    pub random: fn() -> f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(16),
            max_retry_after: Duration::from_secs(30),
            random,
        }
    }
}

impl RetryPolicy {
    /// Sets the maximum number of attempts of a call, the first included. Default 4; 0 counts as 1.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the upper bound of the wait after the first attempt; it doubles with each further
    /// attempt. Default 500 ms.
    #[must_use]
    pub fn with_first_delay(mut self, first_delay: Duration) -> Self {
        self.first_delay = first_delay;
        self
    }

    /// Sets the upper bound of the doubled wait. Default 16 seconds.
    #[must_use]
    pub fn with_max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = max_delay;
        self
    }

    /// Sets the upper bound of the wait that a server may ask for. Default 30 seconds.
    #[must_use]
    pub fn with_max_retry_after(mut self, max_retry_after: Duration) -> Self {
        self.max_retry_after = max_retry_after;
        self
    }

    /// Sets the source of jitter, from 0 to 1.
    #[must_use]
    pub fn with_random(mut self, random: fn() -> f64) -> Self {
        self.random = random;
        self
    }

    /// Returns the wait after attempt number `attempt` (from 1) failed with `error`, or `None` if it
    /// was the last attempt.
    ///
    /// There is no further attempt if none can help, if `max_attempts` are made, or if the wait is
    /// not shorter than `time_left`.
    pub fn delay_after(&self, error: &ChatError, attempt: u32, time_left: Option<Duration>) -> Option<Duration> {
        if !error.retry_helps() || attempt >= self.max_attempts {
            return None;
        }
        let delay = match error.retry_after() {
            Some(after) => after.min(self.max_retry_after),
            None => {
                // The exponent is bounded, so that the shift cannot overflow.
                let doubled = self.first_delay.saturating_mul(1 << attempt.saturating_sub(1).min(16));
                let longest = doubled.min(self.max_delay);
                // `mul_f64` panics where rounding goes beyond the longest duration.
                let delay = longest.as_secs_f64() * (self.random)().clamp(0.0, 1.0);
                Duration::try_from_secs_f64(delay).unwrap_or(longest)
            }
        };
        time_left.is_none_or(|left| delay < left).then_some(delay)
    }
}

/// Minimum duration of a wait that the user is told of. Shorter ones are over before they are read.
pub(crate) const MIN_REPORTED_WAIT: Duration = Duration::from_secs(1);

/// The mark of calls inside of a [`Retry`](crate::Retry) layer.
pub(crate) struct Retried;

/// Attempts `call` until it succeeds, no retry helps or no attempt is left; once, if a layer
/// further out retries.
pub(crate) async fn retrying<F, Attempt>(
    policy: &RetryPolicy,
    mut call: ChatCall,
    deadline: Option<Instant>,
    attempt: F,
) -> Result<ChatResponse, ChatError>
where
    F: Fn(ChatCall) -> Attempt,
    Attempt: Future<Output = Result<ChatResponse, ChatError>>,
{
    if policy.max_attempts <= 1 || call.cx.extension::<Retried>().is_some() {
        return attempt(call).await;
    }
    let deltas = WatchedDeltas::watch(&mut call);
    let again = |error: &ChatError, wait| {
        deltas.reset();
        if wait >= MIN_REPORTED_WAIT {
            call.cx.progress().waiting(Some(wait), reason(error.kind()));
        }
    };
    trying(policy, deadline, || attempt(call.clone()), again).await
}

/// Returns the reason of a wait after an error of this kind.
fn reason(kind: ChatErrorKind) -> WaitReason {
    match kind {
        ChatErrorKind::RateLimited | ChatErrorKind::Overloaded | ChatErrorKind::Saturated => WaitReason::ModelBusy,
        _ => WaitReason::ModelFailed,
    }
}

/// Makes attempts until one succeeds, no retry helps or no attempt is left. Calls `again` before
/// the wait for each further attempt, with the error and the wait.
pub(crate) async fn trying<T, Attempt>(
    policy: &RetryPolicy,
    deadline: Option<Instant>,
    attempt: impl Fn() -> Attempt,
    again: impl Fn(&ChatError, Duration),
) -> Result<T, ChatError>
where
    Attempt: Future<Output = Result<T, ChatError>>,
{
    let mut attempts = 1;
    loop {
        let error = match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let Some(wait) = policy.delay_after(&error, attempts, left) else {
            return Err(error);
        };
        tracing::debug!(error = %loggable(&error.to_string()), ?wait, "trying a model call again");
        metrics::counter!("rockbot.llm.retries").increment(1);
        // Before the wait, so that a listener sees the reset and the wait at once.
        again(&error, wait);
        sleep(wait).await;
        attempts += 1;
    }
}

/// Returns a random number from the standard library's hash seeds: good enough for jitter, and no
/// dependency.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_random_and_in_range() {
        let all: Vec<f64> = (0..100).map(|_| random()).collect();
        assert!(all.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(all.iter().any(|number| *number < 0.5) && all.iter().any(|number| *number >= 0.5));
    }
}
