//! Stands in for the export of spans in a build without the feature `otel`.

use rockbot::TraceContext;
use rockbot::agent::AgentHostBuilder;
use rockbot::prelude::*;
use tracing::Span;
use tracing_subscriber::layer::Identity;

/// The export of spans, which this build does not have.
#[derive(Debug, Clone)]
pub(crate) enum Otlp {}

impl Otlp {
    /// Fails: this build cannot export spans.
    pub(crate) fn open(endpoint: &str, _: &'static str) -> Result<Self, BoxError> {
        Err(format!("this build sends no spans to `{endpoint}`; build it with `--features otel`").into())
    }

    pub(crate) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(crate) fn bridged(&self, _: AgentHostBuilder) -> AgentHostBuilder {
        match *self {}
    }

    pub(crate) fn place(&self, _: &Span) -> Option<TraceContext> {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }
}
