//! Logs, traces and metrics. The libraries only emit them; this program chooses the subscriber
//! and the recorder.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rockbot::agent::telemetry::describe_metrics;
use rockbot::prelude::*;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, Registry};

use super::log_targets;

/// Bucket bounds of durations in milliseconds: from a local tool to a long answer.
const MILLISECONDS: [f64; 10] = [
    1.0, 5.0, 25.0, 100.0, 250.0, 1_000.0, 5_000.0, 15_000.0, 60_000.0, 300_000.0,
];

/// Bucket bounds of durations in seconds and of tokens, as OpenTelemetry recommends.
const SECONDS: [f64; 10] = [0.02, 0.08, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 40.96, 81.92];
const TOKENS: [f64; 8] = [16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0];

/// Logs JSON lines to standard error, filtered by `RUST_LOG`; `spans` sends spans elsewhere, if
/// there is one.
///
/// Each line carries its spans: `dispatch` for a message, in it `invoke_agent` for the turn, in
/// it `chat` and `execute_tool`. All but `chat` carry a `trace_id`, so the lines of one request
/// can be found in every program that it passed through, and in the collector.
/// `rockbot::agent::telemetry` has a table of all spans and metrics.
pub fn install(spans: Option<impl Layer<Registry> + Send + Sync>) -> Result<(), BoxError> {
    let targets = log_targets::targets(Targets::new().with_default(LevelFilter::INFO))?;
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(spans)
        .with(lines)
        .with(targets)
        .try_init()?;
    Ok(())
}

/// Installs the metrics recorder with the description of each metric. Rendering replaces dots in
/// names with `_`.
pub fn metrics() -> Result<PrometheusHandle, BoxError> {
    let metrics = PrometheusBuilder::new()
        .set_buckets(&MILLISECONDS)?
        .set_buckets_for_metric(Matcher::Full("gen_ai.client.operation.duration".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full("gen_ai.client.token.usage".to_owned()), &TOKENS)?
        .set_buckets_for_metric(Matcher::Full("rockbot.agent.context.tokens".to_owned()), &TOKENS)?
        .set_buckets_for_metric(Matcher::Prefix("rockbot.agent.turn.tokens".to_owned()), &TOKENS)?
        .install_recorder()?;
    describe_metrics();
    Ok(metrics)
}
