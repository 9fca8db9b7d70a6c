//! The retry layer: attempts failed calls again, never past the deadline, and in one place only.

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse};
use rockbot_core::support::loggable;

use super::layer::{GatewayLayer, layer_of};
use crate::retry::{Retried, RetryPolicy, retrying};

/// A layer that attempts failed calls again: transient failures, and failures that the server
/// advises to retry.
///
/// Pieces of an answer that went out are taken back with a
/// [`Reset`](rockbot_core::chat::ChatDelta::Reset). Inside of it there are no other retries: not
/// of another `Retry`, nor of [`OpenAiChat`](crate::OpenAiChat), so attempts never multiply. A
/// call that waits for its next attempt holds no permit if the [`Permits`](crate::Permits) are
/// further in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retry(RetryPolicy);

impl Retry {
    /// Creates a layer that retries by `policy`.
    pub fn new(policy: RetryPolicy) -> Self {
        Self(policy)
    }
}

#[async_trait]
impl GatewayLayer for Retry {
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let deadline = call.cx.deadline();
        let attempt = |mut call: ChatCall| {
            call.cx = call.cx.with_extension(Retried);
            next.chat(call)
        };
        let tier = call.request.tier.unwrap_or_default();
        let is_outermost = call.cx.extension::<Retried>().is_none();
        let answer = retrying(&self.0, call, deadline, attempt).await;
        if let Some(error) = answer.as_ref().err().filter(|_| is_outermost) {
            let kind = error.kind();
            let error = error.to_string();
            tracing::warn!(tier = tier.name(), ?kind, error = %loggable(&error), "model call failed");
        }
        answer
    }
}

layer_of!(Retry);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rockbot_core::chat::ChatErrorKind::{self, *};
    use rockbot_core::testing::ScriptedModel;
    use tokio::time::Instant;

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::openai::OpenAiChat;
    use crate::testing::{Half, Log, call, streamed};
    use crate::tiers::ChatTiers;

    fn policy() -> RetryPolicy {
        RetryPolicy::default().with_random(|| 0.5)
    }

    fn error(kind: ChatErrorKind, after_ms: Option<u64>) -> ChatError {
        let error = ChatError::new(kind, "x");
        match after_ms {
            Some(after) => error.with_retry_after(Duration::from_millis(after)),
            None => error,
        }
    }

    #[track_caller]
    fn check(error: &ChatError, attempt: u32, left_ms: u64, expected_ms: Option<u64>) {
        let left = Some(Duration::from_millis(left_ms));
        let expected = expected_ms.map(Duration::from_millis);
        assert_eq!(policy().delay_after(error, attempt, left), expected);
    }

    #[test]
    fn waits_are_spread_doubled_and_bounded() {
        check(&error(Overloaded, None), 1, 60_000, Some(250));
        check(&error(Overloaded, None), 3, 60_000, Some(1000));
        check(&error(RateLimited, Some(2000)), 1, 60_000, Some(2000));
        check(&error(RateLimited, Some(99_999_999_000)), 1, 60_000, Some(30_000));
        let patient = policy().with_max_attempts(101);
        assert_eq!(
            patient.delay_after(&error(TimedOut, None), 100, None),
            Some(Duration::from_secs(8))
        );
    }

    #[test]
    fn there_is_no_retry_when_it_cannot_help() {
        check(&error(Overloaded, None), 4, 60_000, None);
        check(&error(RateLimited, Some(2000)), 1, 2000, None);
        for kind in [Auth, ContextOverflow, InvalidRequest, Cancelled, Saturated, NotFound] {
            check(&error(kind, None), 1, 60_000, None);
        }
        check(&error(Overloaded, None).with_retry_advice(false), 1, 60_000, None);
        check(
            &error(InvalidRequest, None).with_retry_advice(true),
            1,
            60_000,
            Some(250),
        );
    }

    fn retrying_gateway(model: impl ChatClient) -> ModelGateway {
        ModelGateway::builder(model)
            .layer(Retry::new(policy()))
            .layer(Retry::new(policy()))
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
    async fn the_error_of_all_attempts_is_logged_once() {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let model = (0..4).fold(ScriptedModel::new(), |model, _| model.fails(Overloaded));
        retrying_gateway(ChatTiers::new(model)).chat(call()).await.unwrap_err();
        let lines = log.lines();
        let failed = lines.iter().filter(|line| line.contains("message=model call failed"));
        assert_eq!(failed.count(), 1, "{lines:?}");
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
        let client = OpenAiChat::builder(server.endpoint(), "m")
            .max_attempts(6)
            .build()
            .unwrap();
        let policy = policy().with_max_attempts(3).with_random(|| 0.0);
        let gateway = ModelGateway::builder(client).layer(Retry::new(policy)).build();
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
