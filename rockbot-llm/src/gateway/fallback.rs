//! The fallback layer: other models when the first model fails, with a circuit breaker for each.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier, WatchedDeltas};
use rockbot_core::support::loggable;
use tokio::time::Instant;

use super::circuit_breaker::{BreakerState, CircuitBreaker, is_of_the_model};
use super::layer::{GatewayLayer, layer_of};

/// A layer that asks other models, in order, when the first model fails with an error specific to
/// it.
///
/// Each model has a [`CircuitBreaker`] for each tier; a model whose breaker is open is skipped.
/// If all are open, the model whose breaker would admit a probe first is asked all the same, so a
/// call never fails without a model being asked. Each failure is logged as a warning. When all
/// fail, the error is the error of the first model that was asked. Pieces of an answer that went
/// out are taken back with a [`Reset`](rockbot_core::chat::ChatDelta::Reset). Copies share their
/// knowledge of the models.
///
/// In a gateway the other models get everything that stands inside of the fallback; as a layer
/// elsewhere it asks them as they are.
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_llm::{Fallback, ModelGateway, Retry};
///
/// let gateway = ModelGateway::builder(ScriptedModel::new())
///     .fallback(Fallback::to("local", ScriptedModel::new()).then("another", ScriptedModel::new()))
///     // What comes after the fallback is done for each of the models.
///     .layer(Retry::default())
///     .build();
/// ```
#[derive(Clone)]
pub struct Fallback {
    others: Vec<Other>,
    circuit_breaker: CircuitBreaker,
    /// State of the breakers: of the first model and of the others, in order, for each tier.
    breakers: Arc<Mutex<Vec<[BreakerState; 3]>>>,
}

#[derive(Clone)]
struct Other {
    name: Arc<str>,
    client: Arc<dyn ChatClient>,
}

impl Fallback {
    /// Creates a fallback from the first model to `client`, which logs name `name`.
    pub fn to(name: impl Into<Arc<str>>, client: impl ChatClient) -> Self {
        let none = Self {
            others: Vec::new(),
            circuit_breaker: CircuitBreaker::default(),
            breakers: Arc::new(Mutex::new(vec![Default::default()])),
        };
        none.then(name, client)
    }

    /// Adds `client` behind the models so far.
    #[must_use]
    pub fn then(mut self, name: impl Into<Arc<str>>, client: impl ChatClient) -> Self {
        self.others.push(Other {
            name: name.into(),
            client: Arc::new(client),
        });
        self.breakers = Arc::new(Mutex::new(vec![Default::default(); self.others.len() + 1]));
        self
    }

    /// Sets when breakers open, and for how long. Default [`CircuitBreaker::default`].
    #[must_use]
    pub fn circuit_breaker(mut self, settings: CircuitBreaker) -> Self {
        self.circuit_breaker = settings;
        self
    }

    /// Returns a copy whose other models are wrapped by `wrap`.
    pub(super) fn around_others(mut self, wrap: impl Fn(Arc<dyn ChatClient>) -> Arc<dyn ChatClient>) -> Self {
        for other in &mut self.others {
            other.client = wrap(other.client.clone());
        }
        self
    }

    fn model<'a>(&'a self, number: usize, first: &'a dyn ChatClient) -> (&'a str, &'a dyn ChatClient) {
        match number.checked_sub(1).and_then(|number| self.others.get(number)) {
            Some(other) => (&other.name, &*other.client),
            None => ("the first model", first),
        }
    }

    /// Asks the breaker of a model for admission; `None` while it rejects calls.
    fn attempt(&self, number: usize, tier: ModelTier) -> Option<Attempt<'_>> {
        let admits = self.lock()[number][tier as usize].admits(Instant::now());
        admits.then_some(Attempt {
            fallback: self,
            number,
            tier,
        })
    }

    fn ready_first(&self, tier: ModelTier) -> usize {
        let breakers = self.lock();
        let ready = breakers.iter().map(|tiers| tiers[tier as usize].open_until());
        ready
            .enumerate()
            .min_by_key(|(_, at)| *at)
            .map_or(0, |(number, _)| number)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<[BreakerState; 3]>> {
        // No code that can panic runs under the lock.
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl GatewayLayer for Fallback {
    async fn call(&self, mut call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let tier = call.request.tier.unwrap_or_default();
        let deltas = WatchedDeltas::watch(&mut call);
        let mut first_error = None;
        for number in 0..=self.others.len() {
            // The lock is taken only for the admission, never across the call below.
            let Some(attempt) = self.attempt(number, tier) else {
                continue;
            };
            let (name, client) = self.model(number, next);
            let error = match client.chat(call.clone()).await {
                Ok(answer) => {
                    attempt.succeeded();
                    return Ok(client.name_model(answer, tier));
                }
                Err(error) => error,
            };
            // Recorded before the next model is asked, so that concurrent calls skip this one at once.
            attempt.failed(error.kind());
            if !error.kind().other_model_helps() {
                return Err(error);
            }
            let name = loggable(name);
            let text = error.to_string();
            tracing::warn!(tier = tier.name(), kind = ?error.kind(), "{name} failed: {}", loggable(&text));
            first_error.get_or_insert(error);
            deltas.reset();
        }
        match first_error {
            Some(error) => Err(error),
            None => self.model(self.ready_first(tier), next).1.chat(call).await,
        }
    }
}

layer_of!(Fallback);

/// An admitted call of one model. Records its outcome in the model's breaker.
struct Attempt<'a> {
    fallback: &'a Fallback,
    number: usize,
    tier: ModelTier,
}

impl Attempt<'_> {
    fn succeeded(&self) {
        self.breaker(BreakerState::record_success);
    }

    fn failed(&self, kind: ChatErrorKind) {
        if is_of_the_model(kind) {
            self.breaker(|breaker| breaker.record_failure(kind, Instant::now(), self.fallback.circuit_breaker));
        }
    }

    fn breaker(&self, change: impl FnOnce(&mut BreakerState)) {
        change(&mut self.fallback.lock()[self.number][self.tier as usize]);
    }
}

impl Drop for Attempt<'_> {
    /// Releases the half-open probe, also of a call that was dropped, so that a cancelled probe
    /// cannot block the model for ever.
    fn drop(&mut self) {
        self.breaker(BreakerState::release_probe);
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.others.iter().map(|other| &other.name).collect();
        f.debug_struct("Fallback")
            .field("others", &names)
            .field("circuit_breaker", &self.circuit_breaker)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ChatErrorKind::*;
    use rockbot_core::testing::ScriptedModel;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::gateway::retry::Retry;
    use crate::testing::{Half, call, call_of, streamed};

    fn failing(kinds: impl IntoIterator<Item = ChatErrorKind>) -> ScriptedModel {
        kinds.into_iter().fold(ScriptedModel::new(), ScriptedModel::fails)
    }

    fn gateway(first: &ScriptedModel, second: &ScriptedModel) -> ModelGateway {
        let fallback = Fallback::to("second", second.clone());
        ModelGateway::builder(first.clone()).fallback(fallback).build()
    }

    async fn said(gateway: &ModelGateway) -> Result<String, ChatErrorKind> {
        gateway
            .chat(call())
            .await
            .map(|answer| answer.text)
            .map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn an_answer_without_a_name_is_that_of_the_model_which_gave_it() {
        let first = failing([Overloaded]).with_id("first");
        let second = ScriptedModel::new().says("yes").with_id("second");
        let answer = gateway(&first, &second).chat(call()).await.unwrap();
        assert_eq!(answer.model.as_deref(), Some("second"));
    }

    #[tokio::test]
    async fn another_model_is_asked_when_that_helps() {
        for kind in [
            Overloaded,
            RateLimited,
            TimedOut,
            Unreachable,
            Auth,
            QuotaExceeded,
            NotFound,
            ContentFiltered,
        ] {
            let first = failing([kind]);
            let second = ScriptedModel::new().says("second");
            assert_eq!(said(&gateway(&first, &second)).await, Ok("second".into()), "{kind:?}");
        }
        for kind in [ContextOverflow, InvalidRequest, Cancelled, Saturated, NotConfigured] {
            let first = failing([kind]);
            let second = ScriptedModel::new();
            assert_eq!(said(&gateway(&first, &second)).await, Err(kind));
        }
    }

    #[tokio::test]
    async fn the_error_is_that_of_the_first_model() {
        let first = failing([RateLimited]);
        let second = failing([Auth]);
        assert_eq!(said(&gateway(&first, &second)).await, Err(RateLimited));
    }

    #[tokio::test]
    async fn what_the_first_model_said_is_taken_back() {
        let gateway = ModelGateway::builder(Half::failing([CutStream]))
            .fallback(Fallback::to("second", Half::failing([])))
            .build();
        let (call, deltas) = streamed();
        gateway.chat(call).await.unwrap();
        assert_eq!(deltas(), ["half ", "reset", "half ", "whole"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_fails_for_good_is_skipped_while_its_breaker_is_open() {
        let first = failing([Auth]).says("first").says("first");
        let second = (0..2).fold(ScriptedModel::new(), |second, _| second.says("second"));
        let gateway = gateway(&first, &second);
        assert_eq!(said(&gateway).await, Ok("second".into()));
        assert_eq!(said(&gateway).await, Ok("second".into()));
        assert_eq!(first.requests().len(), 1);
        advance(Duration::from_secs(300)).await;
        assert_eq!(said(&gateway).await, Ok("first".into()));
        assert_eq!(said(&gateway).await, Ok("first".into()));
        first.assert_complete();
    }

    #[tokio::test(start_paused = true)]
    async fn tiers_have_breakers_of_their_own() {
        let first = failing([Auth]).says("first");
        let second = ScriptedModel::new().says("second");
        let gateway = gateway(&first, &second);
        said(&gateway).await.unwrap();
        let high = gateway.chat(call_of(ModelTier::High, Default::default())).await;
        assert_eq!(high.unwrap().text, "first");
    }

    #[tokio::test(start_paused = true)]
    async fn a_content_filter_opens_no_breaker() {
        let first = failing([ContentFiltered; 4]).says("first");
        let second = (0..4).fold(ScriptedModel::new(), |second, _| second.says("second"));
        let gateway = gateway(&first, &second);
        for _ in 0..4 {
            assert_eq!(said(&gateway).await, Ok("second".into()));
        }
        assert_eq!(said(&gateway).await, Ok("first".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_breakers_are_open_one_model_is_asked_all_the_same() {
        let first = failing([Auth]).says("first");
        let second = failing([Auth]);
        let gateway = gateway(&first, &second);
        assert_eq!(said(&gateway).await, Err(Auth));
        assert_eq!(said(&gateway).await, Ok("first".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_dropped_does_not_block_the_next() {
        let first = failing([Auth]).hangs().says("first");
        let second = ScriptedModel::new().says("second");
        let gateway = gateway(&first, &second);
        said(&gateway).await.unwrap();
        advance(Duration::from_secs(300)).await;
        timeout(Duration::from_secs(1), gateway.chat(call())).await.unwrap_err();
        assert_eq!(said(&gateway).await, Ok("first".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn layers_after_the_fallback_hold_for_each_model() {
        let first = failing([Overloaded; 4]);
        let second = failing([Overloaded; 2]).says("second");
        let gateway = ModelGateway::builder(first.clone())
            .fallback(Fallback::to("second", second.clone()))
            .layer(Retry::default())
            .build();
        assert_eq!(said(&gateway).await, Ok("second".into()));
        assert_eq!((first.requests().len(), second.requests().len()), (4, 3));
    }
}
