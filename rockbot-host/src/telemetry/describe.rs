//! What each metric means, for recorders that tell.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

use Kind::{Counter, Gauge, Histogram};

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

struct Metric {
    name: &'static str,
    kind: Kind,
    unit: Option<Unit>,
    what: &'static str,
}

const fn metric(name: &'static str, kind: Kind, unit: Option<Unit>, what: &'static str) -> Metric {
    Metric { name, kind, unit, what }
}

const COUNT: Option<Unit> = Some(Unit::Count);
const MILLISECONDS: Option<Unit> = Some(Unit::Milliseconds);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

/// All metrics, in the order of the table in `telemetry.md`.
#[rustfmt::skip]
const METRICS: &[Metric] = &[
    metric("gen_ai.client.operation.duration", Histogram, SECONDS, "model calls of turns, their retries included"),
    metric("gen_ai.client.token.usage", Histogram, COUNT, "tokens of a model call"),
    metric("rockbot.agent.turns", Counter, COUNT, "turns that ended"),
    metric("rockbot.agent.turn.duration", Histogram, MILLISECONDS, "how long turns worked; what they waited for is left out"),
    metric("rockbot.agent.turn.tokens.input", Histogram, COUNT, "tokens that a turn sent, cached ones included"),
    metric("rockbot.agent.turn.tokens.output", Histogram, COUNT, "tokens that a turn received"),
    metric("rockbot.agent.turn.tokens.cached", Histogram, COUNT, "tokens that a turn sent and the provider had cached"),
    metric("rockbot.agent.turn.tools", Histogram, COUNT, "tool calls of a turn"),
    metric("rockbot.agent.context.tokens", Histogram, COUNT, "how large the context of a model call was"),
    metric("rockbot.agent.context.compacted", Counter, COUNT, "contexts that were shortened"),
    metric("rockbot.agent.tier_escalations", Counter, COUNT, "turns that went on with a more capable model"),
    metric("rockbot.agent.completion_check.complete", Counter, COUNT, "answers judged complete"),
    metric("rockbot.agent.completion_check.incomplete", Counter, COUNT, "answers judged incomplete"),
    metric("rockbot.agent.completion_check.skipped", Counter, COUNT, "answers not judged: their turns were ended"),
    metric("rockbot.agent.follow_up.triggered", Counter, COUNT, "answers after which more was worth doing"),
    metric("rockbot.agent.follow_up.none", Counter, COUNT, "answers after which nothing more was worth doing"),
    metric("rockbot.agent.follow_up.skipped", Counter, COUNT, "answers after which nobody looked for more to do"),
    metric("rockbot.prompt.prefix_changes", Counter, COUNT, "changes of what prompts begin with: the provider's cache is lost"),
    metric("rockbot.tool.invocations", Counter, COUNT, "tool calls, over every door"),
    metric("rockbot.tool.invoke.duration", Histogram, MILLISECONDS, "how long tool calls took, waiting for a place included"),
    metric("rockbot.pipeline.dispatch.duration", Histogram, MILLISECONDS, "how long messages took from a bus to their end"),
    metric("rockbot.pipeline.duplicates", Counter, COUNT, "messages that had been handled before"),
    metric("rockbot.messaging.publish.messages", Counter, COUNT, "messages that the in-process bus took"),
    metric("rockbot.messaging.publish.duration", Histogram, MILLISECONDS, "how long publishing took, waiting for room included"),
    metric("rockbot.messaging.process.messages", Counter, COUNT, "deliveries of the in-process bus that were handled"),
    metric("rockbot.messaging.process.duration", Histogram, MILLISECONDS, "how long a delivery was handled"),
    metric("rockbot.messaging.active_messages", Gauge, COUNT, "deliveries that are being handled"),
    metric("rockbot.userproxy.messages_sent", Counter, COUNT, "messages that a `UserProxy` sent"),
    metric("rockbot.userproxy.replies_received", Counter, COUNT, "final replies to them"),
    metric("rockbot.userproxy.roundtrip.duration", Histogram, MILLISECONDS, "from a message to its final reply"),
    metric("rockbot.llm.requests", Counter, COUNT, "calls at the gateway's `Meter`"),
    metric("rockbot.llm.request.duration", Histogram, MILLISECONDS, "how long they took"),
    metric("rockbot.llm.token.input", Counter, COUNT, "tokens sent, cached ones included"),
    metric("rockbot.llm.token.output", Counter, COUNT, "tokens received"),
    metric("rockbot.llm.cost.usd", Gauge, None, "US dollars spent so far, with a `Ledger`"),
    metric("rockbot.llm.cost.per_request", Histogram, None, "US dollars for a call, with a `Ledger`"),
    metric("rockbot.llm.permit.wait", Histogram, MILLISECONDS, "how long calls waited for the gateway's permit"),
    metric("rockbot.llm.retries", Counter, COUNT, "calls that were tried again"),
    metric("rockbot.embedding.calls", Counter, COUNT, "calls for vectors of memories and of what is searched for"),
    metric("rockbot.embedding.failures", Counter, COUNT, "those of them that failed"),
    metric("rockbot.embedding.duration", Histogram, MILLISECONDS, "how long they took"),
];

/// Tells the recorder of this program what each metric of the framework means and in which unit it is, those of the
/// model gateway included. Called by the program once, after it installed its recorder; without one it does nothing.
///
/// ```
/// // The recorder first, then:
/// rockbot_host::telemetry::describe_metrics();
/// ```
pub fn describe_metrics() {
    for metric in METRICS {
        let Metric { name, what, .. } = *metric;
        match (&metric.kind, metric.unit) {
            (Counter, Some(unit)) => describe_counter!(name, unit, what),
            (Counter, None) => describe_counter!(name, what),
            (Gauge, Some(unit)) => describe_gauge!(name, unit, what),
            (Gauge, None) => describe_gauge!(name, what),
            (Histogram, Some(unit)) => describe_histogram!(name, unit, what),
            (Histogram, None) => describe_histogram!(name, what),
        }
    }
}
