//! Retries of model calls: the policy, and the one loop that attempts a call again.
//!
//! Both the [`Retry`](crate::Retry) layer of a gateway and the wire clients use it. A call that a retry layer attempts
//! carries a [mark](Retried), and whatever is further in attempts it once, so attempts never multiply.

mod deltas;

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatError, ChatResponse};
use rockbot_core::support::loggable;
use tokio::time::{Instant, sleep};

pub(crate) use self::deltas::WatchedDeltas;

/// How often and how late a call is tried again.
///
/// The wait before a retry is what the server asks for, up to a longest; else a random part of a back-off that doubles
/// with each retry.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Maximum number of attempts of a call, the first included. Default 4; 0 counts as 1.
    pub max_attempts: u32,
    /// Upper bound of the wait after the first attempt; it doubles with each further attempt. Default 500 ms.
    pub first_delay: Duration,
    /// Upper bound of the doubled wait. Default 16 seconds.
    pub max_delay: Duration,
    /// The longest wait that a server may ask for. 30 seconds by default.
    pub max_retry_after: Duration,
    /// Numbers from 0 to 1 that spread the waits of many clients. Random by default.
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
    /// Returns the wait after attempt number `attempt` (from 1) failed with `error`, or `None` if it was the last one.
    ///
    /// There is no further attempt if none can help, if `max_attempts` are made, or if the wait is not shorter than
    /// `time_left`.
    pub fn delay_after(&self, error: &ChatError, attempt: u32, time_left: Option<Duration>) -> Option<Duration> {
        if !error.retry_helps() || attempt >= self.max_attempts {
            return None;
        }
        let delay = match error.retry_after() {
            Some(after) => after.min(self.max_retry_after),
            None => {
                // The exponent is bounded, so that the shift cannot overflow.
                let doubled = self.first_delay.saturating_mul(1 << attempt.saturating_sub(1).min(16));
                doubled.min(self.max_delay).mul_f64((self.random)().clamp(0.0, 1.0))
            }
        };
        time_left.is_none_or(|left| delay < left).then_some(delay)
    }
}

/// Marks the calls inside of a [`Retry`].
pub(crate) struct Retried;

/// Attempts `call` until it succeeds, nothing helps or nothing is left, unless somebody further out does.
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
    trying(policy, deadline, || attempt(call.clone()), || deltas.reset()).await
}

/// Makes an `attempt` until one succeeds, nothing helps or nothing is left: the one loop that does. Before another one
/// `again` is called.
pub(crate) async fn trying<T, Attempt>(
    policy: &RetryPolicy,
    deadline: Option<Instant>,
    attempt: impl Fn() -> Attempt,
    again: impl Fn(),
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
        again();
        sleep(wait).await;
        attempts += 1;
    }
}

/// Randomness that the standard library gathered for its hash maps: enough to spread waits.
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
