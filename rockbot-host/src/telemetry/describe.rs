//! The description of each metric, for recorders that export descriptions.

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
    description: &'static str,
}

const fn metric(name: &'static str, kind: Kind, unit: Option<Unit>, description: &'static str) -> Metric {
    Metric {
        name,
        kind,
        unit,
        description,
    }
}

const COUNT: Option<Unit> = Some(Unit::Count);
const MILLISECONDS: Option<Unit> = Some(Unit::Milliseconds);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

/// All metrics, in the order of the table in `telemetry.md`; a test compares them.
#[rustfmt::skip]
const METRICS: &[Metric] = &[
    metric("gen_ai.client.operation.duration", Histogram, SECONDS, "model calls of turns, their retries included"),
    metric("gen_ai.client.token.usage", Histogram, COUNT, "tokens of a model call"),
    metric("rockbot.agent.turns", Counter, COUNT, "turns that ended"),
    metric("rockbot.agent.turns.taken_over", Counter, COUNT, "turns of other processes that this process took over"),
    metric("rockbot.agent.turn.duration", Histogram, MILLISECONDS, "working time of turns, without the time that they waited"),
    metric("rockbot.agent.turn.tokens.input", Histogram, COUNT, "input tokens of a turn, cached ones included"),
    metric("rockbot.agent.turn.tokens.output", Histogram, COUNT, "output tokens of a turn"),
    metric("rockbot.agent.turn.tokens.cached", Histogram, COUNT, "input tokens of a turn that the provider had cached"),
    metric("rockbot.agent.turn.tools", Histogram, COUNT, "tool calls of a turn"),
    metric("rockbot.agent.context.tokens", Histogram, COUNT, "size of the context of a model call"),
    metric("rockbot.agent.context.source_failures", Counter, COUNT, "context sources that failed or took too long"),
    metric("rockbot.agent.context.compacted", Counter, COUNT, "compactions of a conversation"),
    metric("rockbot.agent.text_calls", Counter, COUNT, "tool calls that were read from the text of an answer"),
    metric("rockbot.agent.text_requests", Counter, COUNT, "questions asked again without native tools: the server could not read the answer, or the first call was text"),
    metric("rockbot.agent.tier_escalations", Counter, COUNT, "turns that were raised to a higher tier"),
    metric("rockbot.agent.loop_policy.asked_again", Counter, COUNT, "answers that a loop policy of the program sent back"),
    metric("rockbot.agent.loop_policy.ended", Counter, COUNT, "turns that a loop policy of the program ended"),
    metric("rockbot.agent.loop_policy.ignored", Counter, COUNT, "questions of loop policies beyond the limit of a turn"),
    metric("rockbot.agent.output_validation.rejected", Counter, COUNT, "answers that an output validator of the program did not accept"),
    metric("rockbot.agent.completion_check.complete", Counter, COUNT, "answers judged complete"),
    metric("rockbot.agent.completion_check.incomplete", Counter, COUNT, "answers judged incomplete"),
    metric("rockbot.agent.completion_check.skipped", Counter, COUNT, "answers not judged, because their turns had to end"),
    metric("rockbot.agent.follow_up.triggered", Counter, COUNT, "complete answers with a follow-up"),
    metric("rockbot.agent.follow_up.none", Counter, COUNT, "complete answers for which the judge proposed no follow-up"),
    metric("rockbot.agent.follow_up.skipped", Counter, COUNT, "answers without a follow-up, because their turns had to end"),
    metric("rockbot.prompt.prefix_changes", Counter, COUNT, "changes of the beginning of prompts, which lose the provider's prompt cache"),
    metric("rockbot.tool.invocations", Counter, COUNT, "tool calls of every origin"),
    metric("rockbot.tool.blocked", Counter, COUNT, "tool calls that blocked their thread for longer than `ToolLimits::max_blocking`"),
    metric("rockbot.tool.invoke.duration", Histogram, MILLISECONDS, "duration of tool calls, the wait for a permit included"),
    metric("rockbot.pipeline.dispatch.duration", Histogram, MILLISECONDS, "duration of messages from the bus to their disposition"),
    metric("rockbot.pipeline.duplicates", Counter, COUNT, "redelivered messages that had been handled before"),
    metric("rockbot.messaging.publish.messages", Counter, COUNT, "messages that the in-process bus accepted"),
    metric("rockbot.messaging.publish.duration", Histogram, MILLISECONDS, "duration of publishing, the wait for capacity included"),
    metric("rockbot.messaging.process.messages", Counter, COUNT, "deliveries of the in-process bus that were handled"),
    metric("rockbot.messaging.process.duration", Histogram, MILLISECONDS, "duration of the handling of a delivery"),
    metric("rockbot.messaging.active_messages", Gauge, COUNT, "deliveries in progress"),
    metric("rockbot.userproxy.messages_sent", Counter, COUNT, "messages that a `UserProxy` sent"),
    metric("rockbot.userproxy.replies_received", Counter, COUNT, "final replies that a `UserProxy` received"),
    metric("rockbot.userproxy.roundtrip.duration", Histogram, MILLISECONDS, "time from a message to its final reply"),
    metric("rockbot.llm.requests", Counter, COUNT, "model calls that the gateway's `Meter` saw"),
    metric("rockbot.llm.request.duration", Histogram, MILLISECONDS, "duration of these model calls"),
    metric("rockbot.llm.token.input", Counter, COUNT, "input tokens, cached ones included"),
    metric("rockbot.llm.token.output", Counter, COUNT, "output tokens"),
    metric("rockbot.llm.cost.usd", Gauge, None, "US dollars spent so far, with a `Ledger`"),
    metric("rockbot.llm.cost.per_request", Histogram, None, "US dollars of a model call, with a `Ledger`"),
    metric("rockbot.llm.permit.wait", Histogram, MILLISECONDS, "wait of model calls for the gateway's permit"),
    metric("rockbot.llm.retries", Counter, COUNT, "retries of model calls"),
    metric("rockbot.dream.passes", Counter, COUNT, "passes of dreams that ended"),
    metric("rockbot.dream.plans", Counter, COUNT, "plans that passes of dreams made"),
    metric("rockbot.embedding.calls", Counter, COUNT, "calls for embeddings of memories and of queries"),
    metric("rockbot.embedding.failures", Counter, COUNT, "failed calls for embeddings"),
    metric("rockbot.embedding.duration", Histogram, MILLISECONDS, "duration of calls for embeddings"),
];

/// Registers the description and the unit of each metric of the framework with the program's
/// recorder, including the metrics of the model gateway.
///
/// Call it once, after the recorder is installed; without a recorder it has no effect.
///
/// # Examples
///
/// ```
/// // The recorder first, then:
/// rockbot_host::telemetry::describe_metrics();
/// ```
pub fn describe_metrics() {
    for metric in METRICS {
        let Metric { name, description, .. } = *metric;
        match (&metric.kind, metric.unit) {
            (Counter, Some(unit)) => describe_counter!(name, unit, description),
            (Counter, None) => describe_counter!(name, description),
            (Gauge, Some(unit)) => describe_gauge!(name, unit, description),
            (Gauge, None) => describe_gauge!(name, description),
            (Histogram, Some(unit)) => describe_histogram!(name, unit, description),
            (Histogram, None) => describe_histogram!(name, description),
        }
    }
}
