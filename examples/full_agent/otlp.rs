//! Traces for OpenTelemetry: spans are sent to a collector over OTLP, and the host learns their
//! ids, so that other programs become part of the trace. Needs the feature `otel`.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rockbot::TraceContext;
use rockbot::agent::AgentHostBuilder;
use rockbot::agent::telemetry::TraceBridge;
use rockbot::prelude::*;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

/// Maximum duration of one export, and of the last one at the end of the program.
const EXPORT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The export of spans to a collector. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Otlp(SdkTracerProvider);

impl Otlp {
    /// Opens the export to the collector at `endpoint`, such as `http://127.0.0.1:4318`, in the name of `service`.
    ///
    /// A thread of its own sends the spans in batches; at most 2 048 wait, and further ones are
    /// dropped.
    pub(crate) fn open(endpoint: &str, service: &'static str) -> Result<Self, BoxError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(EXPORT_TIME_LIMIT)
            .build()?;
        let resource = Resource::builder().with_service_name(service).build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self(provider))
    }

    /// Returns the layer of the subscriber that turns spans of `tracing` into those of OpenTelemetry.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_tracer(self.0.tracer("rockbot"))
    }

    /// Gives the builder's host the ids of the exported spans.
    pub(crate) fn bridged(&self, host: AgentHostBuilder) -> AgentHostBuilder {
        host.trace_bridge(OtelBridge)
    }

    /// Returns the position of a span of this program.
    pub(crate) fn place(&self, span: &Span) -> Option<TraceContext> {
        OtelBridge.join(span, None)
    }

    /// Sends the spans that have ended, and ends the export.
    pub(crate) fn close(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(EXPORT_TIME_LIMIT) {
            tracing::warn!(%error, "the latest spans could not be sent to the collector");
        }
    }
}

/// The bridge between the host and the layer of [`Otlp`].
struct OtelBridge;

impl TraceBridge for OtelBridge {
    fn join(&self, span: &Span, parent: Option<&TraceContext>) -> Option<TraceContext> {
        if let Some(parent) = parent {
            // Fails for a span that no layer records; it has no position, either.
            let _ = span.set_parent(Context::new().with_remote_span_context(remote(parent)));
        }
        let context = span.context();
        let placed = context.span().span_context().clone();
        let trace = placed.trace_id().to_bytes();
        let id = placed.span_id().to_bytes();
        let place = TraceContext::new(u128::from_be_bytes(trace), u64::from_be_bytes(id), placed.is_sampled())?;
        Some(place.with_tracestate(&placed.trace_state().header()))
    }
}

fn remote(parent: &TraceContext) -> SpanContext {
    let flags = if parent.is_sampled() {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    SpanContext::new(
        TraceId::from_bytes(parent.trace_id().to_be_bytes()),
        SpanId::from_bytes(parent.span_id().to_be_bytes()),
        flags,
        true,
        parent
            .tracestate()
            .and_then(|state| state.parse().ok())
            .unwrap_or(TraceState::NONE),
    )
}
