//! Asking again: when it helps, as late as the server asks, never past the deadline, and in one place only.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse};
use rockbot_core::support::loggable;
use tokio::time::{Instant, sleep};

use super::deltas::WatchedDeltas;
use super::layer::{GatewayLayer, layer_of};

/// How often and how late a call is tried again.
///
/// The wait before a retry is what the server asks for, up to a longest; else a random part of a back-off that doubles
/// with each retry.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// How many retries a call gets at most. 3 by default.
    pub retries: u32,
    /// The longest wait before the first retry. 500 ms by default.
    pub back_off: Duration,
    /// What the doubled back-off is at most. 16 seconds by default.
    pub max_back_off: Duration,
    /// The longest wait that a server may ask for. 30 seconds by default.
    pub max_retry_after: Duration,
    /// Numbers from 0 to 1 that spread the waits of many clients. Random by default.
    pub random: fn() -> f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 3,
            back_off: Duration::from_millis(500),
            max_back_off: Duration::from_secs(16),
            max_retry_after: Duration::from_secs(30),
            random,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before the next attempt, after `error` and so many retries; `None` when there should be none,
    /// as when the wait is not shorter than the `time_left`.
    pub fn wait(&self, error: &ChatError, retries_done: u32, time_left: Option<Duration>) -> Option<Duration> {
        if !error.retry_helps() || retries_done >= self.retries {
            return None;
        }
        let wait = match error.retry_after() {
            Some(after) => after.min(self.max_retry_after),
            None => {
                let doubled = self.back_off.saturating_mul(1 << retries_done.min(16));
                doubled.min(self.max_back_off).mul_f64((self.random)().clamp(0.0, 1.0))
            }
        };
        time_left.is_none_or(|left| wait < left).then_some(wait)
    }
}

/// Tries failed calls again: the kinds of failures that may pass, and those of which the server says so.
///
/// Pieces of an answer that went out are taken back with a [`Reset`](rockbot_core::chat::ChatDelta::Reset). Inside of
/// it nobody else retries: not another `Retry`, nor [`OpenAiChat`](crate::OpenAiChat), so attempts never multiply. A
/// call that waits to be tried again holds no permit when the [`Permits`](crate::Permits) are further in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retry(RetryPolicy);

impl Retry {
    /// Retries by this policy.
    pub fn new(policy: RetryPolicy) -> Self {
        Self(policy)
    }
}

/// Marks the calls inside of a [`Retry`].
struct Retried;

#[async_trait]
impl GatewayLayer for Retry {
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let deadline = call.cx.deadline();
        let attempt = |call: ChatCall| {
            let cx = call.cx.with_extension(Retried);
            next.chat(ChatCall { cx, ..call })
        };
        retrying(&self.0, call, deadline, attempt).await
    }
}

layer_of!(Retry);

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
    if policy.retries == 0 || call.cx.extension::<Retried>().is_some() {
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
    let mut retries = 0;
    loop {
        let error = match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let Some(wait) = policy.wait(&error, retries, left) else {
            return Err(error);
        };
        tracing::debug!(error = %loggable(&error.to_string()), ?wait, "trying a model call again");
        metrics::counter!("rockbot.llm.retries").increment(1);
        again();
        sleep(wait).await;
        retries += 1;
    }
}

/// Randomness that the standard library gathered for its hash maps: enough to spread waits.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::ChatErrorKind::{self, *};
    use rockbot_core::testing::ScriptedModel;

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::openai::OpenAiChat;
    use crate::testing::{Half, call, streamed};

    fn policy() -> RetryPolicy {
        RetryPolicy {
            random: || 0.5,
            ..RetryPolicy::default()
        }
    }

    fn error(kind: ChatErrorKind, after_ms: Option<u64>) -> ChatError {
        let error = ChatError::new(kind, "x");
        match after_ms {
            Some(after) => error.with_retry_after(Duration::from_millis(after)),
            None => error,
        }
    }

    #[track_caller]
    fn check(error: &ChatError, retries_done: u32, left_ms: u64, expected_ms: Option<u64>) {
        let left = Some(Duration::from_millis(left_ms));
        let expected = expected_ms.map(Duration::from_millis);
        assert_eq!(policy().wait(error, retries_done, left), expected);
    }

    #[test]
    fn waits_are_spread_doubled_and_bounded() {
        check(&error(Overloaded, None), 0, 60_000, Some(250));
        check(&error(Overloaded, None), 2, 60_000, Some(1000));
        check(&error(RateLimited, Some(2000)), 0, 60_000, Some(2000));
        check(&error(RateLimited, Some(99_999_999_000)), 0, 60_000, Some(30_000));
        let patient = RetryPolicy {
            retries: 100,
            ..policy()
        };
        assert_eq!(
            patient.wait(&error(TimedOut, None), 99, None),
            Some(Duration::from_secs(8))
        );
    }

    #[test]
    fn there_is_no_retry_when_it_cannot_help() {
        check(&error(Overloaded, None), 3, 60_000, None);
        check(&error(RateLimited, Some(2000)), 0, 2000, None);
        for kind in [Auth, ContextOverflow, InvalidRequest, Cancelled, Saturated, NotFound] {
            check(&error(kind, None), 0, 60_000, None);
        }
        check(&error(Overloaded, None).with_retry_advice(false), 0, 60_000, None);
        check(
            &error(InvalidRequest, None).with_retry_advice(true),
            0,
            60_000,
            Some(250),
        );
    }

    #[test]
    fn jitter_is_random_and_in_range() {
        let all: Vec<f64> = (0..100).map(|_| random()).collect();
        assert!(all.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(all.iter().any(|number| *number < 0.5) && all.iter().any(|number| *number >= 0.5));
    }

    fn retrying_gateway(model: impl ChatClient) -> ModelGateway {
        ModelGateway::builder(model)
            .part(Retry::new(policy()))
            .part(Retry::new(policy()))
            .build()
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_what_went_out_is_taken_back() {
        let model = Half::failing([CutStream, Overloaded]);
        let (call, deltas) = streamed();
        let started = Instant::now();
        assert_eq!(retrying_gateway(model).chat(call).await.unwrap().text, "half whole");
        assert_eq!(started.elapsed(), Duration::from_millis(250 + 500));
        assert_eq!(deltas(), ["half ", "reset", "half ", "reset", "half ", "whole"]);
    }

    #[tokio::test(start_paused = true)]
    async fn retries_do_not_multiply() {
        let model = (0..10).fold(ScriptedModel::new(), |model, _| model.fails(Overloaded));
        retrying_gateway(model.clone()).chat(call()).await.unwrap_err();
        assert_eq!(model.requests().len(), 4);
    }

    #[tokio::test]
    async fn the_openai_client_leaves_retries_to_the_one_around_it() {
        use crate::fixture::{Reply, Server};

        let server = Server::start((0..9).map(|_| Reply::json(500, "{}"))).await;
        let client = OpenAiChat::builder(server.endpoint(), "m").retries(5).build().unwrap();
        let policy = RetryPolicy {
            retries: 2,
            random: || 0.0,
            ..policy()
        };
        let gateway = ModelGateway::builder(client).part(Retry::new(policy)).build();
        assert_eq!(gateway.chat(call()).await.unwrap_err().kind(), Overloaded);
        assert_eq!(server.requests().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn no_retry_begins_after_the_deadline() {
        let model = (0..9).fold(ScriptedModel::new(), |model, _| model.fails(Overloaded));
        let mut late = call();
        late.cx = late.cx.with_deadline(Instant::now() + Duration::from_millis(700));
        let started = Instant::now();
        assert_eq!(
            retrying_gateway(model.clone()).chat(late).await.unwrap_err().kind(),
            Overloaded
        );
        assert_eq!(
            (model.requests().len(), started.elapsed()),
            (2, Duration::from_millis(250))
        );
    }
}
