//! The metering layer: calls, time, tokens and cost.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, Ledger, ModelTier};
use tokio::time::Instant;

use super::layer::{GatewayLayer, layer_of};

/// A layer that measures model calls, and enters their cost in a [`Ledger`] if it has one. Copies
/// share everything.
///
/// | metric | kind | labels |
/// |---|---|---|
/// | `rockbot.llm.requests` | counter | `tier`, `status`: `success`, `error`, `timeout`, `cancelled` |
/// | `rockbot.llm.request.duration` | histogram, milliseconds | `tier`, `status` |
/// | `rockbot.llm.token.input`, `rockbot.llm.token.output` | counters | `tier` |
/// | `rockbot.llm.cost.usd` | gauge that only rises, dollars; with a ledger only | `tier` |
/// | `rockbot.llm.cost.per_request` | histogram, dollars; with a ledger only | `tier` |
///
/// Inside of a [`Retry`](crate::Retry) each attempt counts, outside of it each call. A call that
/// is dropped counts as cancelled.
#[derive(Clone, Default)]
pub struct Meter(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tiers: [OnceLock<TierMeters>; 3],
    ledger: Option<Ledger>,
}

/// The meters of one tier.
struct TierMeters {
    tier: ModelTier,
    statuses: [OnceLock<(Counter, Histogram)>; STATUSES.len()],
    input: Counter,
    output: Counter,
    cost: Gauge,
    cost_of_one: Histogram,
}

const STATUSES: [&str; 4] = ["success", "error", "timeout", "cancelled"];

const CANCELLED: usize = 3;

impl Meter {
    /// Creates a meter without a ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the ledger that records answers.
    #[must_use]
    pub fn ledger(self, ledger: Ledger) -> Self {
        Self(Arc::new(Inner {
            ledger: Some(ledger),
            tiers: Default::default(),
        }))
    }

    fn tier(&self, tier: ModelTier) -> &TierMeters {
        self.0.tiers[tier as usize].get_or_init(|| TierMeters::new(tier))
    }
}

#[async_trait]
impl GatewayLayer for Meter {
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let tier = call.request.tier.unwrap_or_default();
        let meters = self.tier(tier);
        let mut measured = Measured::begin(meters);
        let cx = self.0.ledger.is_some().then(|| call.cx.clone());
        let answer = next.chat(call).await.map(|answer| next.name_model(answer, tier));
        measured.status = status(&answer);
        if let Ok(answer) = &answer {
            let usage = answer.usage.unwrap_or_default();
            meters.input.increment(usage.input);
            meters.output.increment(usage.output);
            if let (Some(ledger), Some(cx)) = (&self.0.ledger, cx) {
                let cost = ledger.enter(&cx, tier, answer).cost.as_dollars();
                meters.cost.increment(cost);
                meters.cost_of_one.record(cost);
            }
        }
        answer
    }
}

layer_of!(Meter);

fn status(answer: &Result<ChatResponse, ChatError>) -> usize {
    match answer.as_ref().map_err(ChatError::kind) {
        Ok(_) => 0,
        Err(ChatErrorKind::TimedOut) => 2,
        Err(ChatErrorKind::Cancelled) => CANCELLED,
        Err(_) => 1,
    }
}

impl TierMeters {
    fn new(tier: ModelTier) -> Self {
        Self {
            tier,
            statuses: Default::default(),
            input: counter!("rockbot.llm.token.input", "tier" => tier.name()),
            output: counter!("rockbot.llm.token.output", "tier" => tier.name()),
            cost: gauge!("rockbot.llm.cost.usd", "tier" => tier.name()),
            cost_of_one: histogram!("rockbot.llm.cost.per_request", "tier" => tier.name()),
        }
    }

    fn status(&self, status: usize) -> &(Counter, Histogram) {
        let tier = self.tier.name();
        self.statuses[status].get_or_init(|| {
            let status = STATUSES[status];
            (
                counter!("rockbot.llm.requests", "tier" => tier, "status" => status),
                histogram!("rockbot.llm.request.duration", "tier" => tier, "status" => status),
            )
        })
    }
}

/// A call that is counted when it is dropped: as cancelled, unless its outcome was set. So a
/// cancelled call counts, too.
struct Measured<'a> {
    meters: &'a TierMeters,
    began: Instant,
    status: usize,
}

impl<'a> Measured<'a> {
    fn begin(meters: &'a TierMeters) -> Self {
        Self {
            meters,
            began: Instant::now(),
            status: CANCELLED,
        }
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        let (requests, duration) = self.meters.status(self.status);
        requests.increment(1);
        duration.record(self.began.elapsed().as_secs_f64() * 1000.0);
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("ledger", &self.0.ledger)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    use rockbot_core::chat::Usage;
    use rockbot_core::testing::ScriptedModel;
    use tokio::time::timeout;

    use super::*;
    use crate::gateway::{ModelGateway, Permits, Retry};
    use crate::limits::TimeLimit;
    use crate::pricing::PriceTable;
    use crate::testing::{call, call_of};

    #[tokio::test(start_paused = true)]
    async fn calls_are_measured_by_tier_and_status() {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let usage = Usage::new(1_000_000, 500_000);
        let answer = ChatResponse::text("x").with_model("gpt-4.1").with_usage(usage);
        let model = ScriptedModel::new()
            .fails(ChatErrorKind::Overloaded)
            .answers(answer)
            .hangs()
            .hangs()
            .fails(ChatErrorKind::Auth);
        let ledger = Ledger::new(PriceTable::default());
        let gateway = ModelGateway::builder(model)
            .layer(Retry::default())
            .layer(Permits::default())
            .layer(Meter::new().ledger(ledger.clone()))
            .layer(TimeLimit::of(Duration::from_secs(9)))
            .build();

        gateway.chat(call()).await.unwrap();
        timeout(Duration::from_secs(1), gateway.chat(call())).await.unwrap_err();
        // The first attempt takes too long, the second fails for good.
        gateway
            .chat(call_of(ModelTier::Low, Default::default()))
            .await
            .unwrap_err();

        let mut seen = BTreeMap::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let (_, key) = key.into_parts();
            let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
            let value = match value {
                DebugValue::Counter(count) => count.to_string(),
                DebugValue::Gauge(value) => format!("${value}"),
                DebugValue::Histogram(values) => format!("{} values", values.len()),
            };
            seen.insert(format!("{} {}", key.name(), labels.join(" ")), value);
        }
        let expected = [
            ("rockbot.llm.cost.per_request Balanced", "1 values"),
            ("rockbot.llm.cost.per_request Low", "0 values"),
            ("rockbot.llm.cost.usd Balanced", "$6"),
            ("rockbot.llm.cost.usd Low", "$0"),
            ("rockbot.llm.permit.wait Balanced", "3 values"),
            ("rockbot.llm.permit.wait Low", "2 values"),
            ("rockbot.llm.request.duration Balanced cancelled", "1 values"),
            ("rockbot.llm.request.duration Balanced error", "1 values"),
            ("rockbot.llm.request.duration Balanced success", "1 values"),
            ("rockbot.llm.request.duration Low error", "1 values"),
            ("rockbot.llm.request.duration Low timeout", "1 values"),
            ("rockbot.llm.requests Balanced cancelled", "1"),
            ("rockbot.llm.requests Balanced error", "1"),
            ("rockbot.llm.requests Balanced success", "1"),
            ("rockbot.llm.requests Low error", "1"),
            ("rockbot.llm.requests Low timeout", "1"),
            ("rockbot.llm.retries ", "2"),
            ("rockbot.llm.token.input Balanced", "1000000"),
            ("rockbot.llm.token.input Low", "0"),
            ("rockbot.llm.token.output Balanced", "500000"),
            ("rockbot.llm.token.output Low", "0"),
        ];
        let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(seen, expected);
        assert_eq!(
            ledger
                .of_session(&rockbot_core::Principal::default(), &"s".into())
                .cost
                .as_dollars(),
            6.0
        );
    }
}
