//! The positions of the host's spans in traces: from a backend through a [`TraceBridge`], else
//! the host's own.

use std::fmt;
use std::sync::Arc;

use rockbot_core::{CallContext, TraceContext};
use tracing::Span;

/// A bridge to a tracing backend that assigns the ids of spans itself, such as OpenTelemetry's.
///
/// The host asks it about each span of a message, a turn and a tool call. The position that it
/// returns goes to other programs, whose spans become children of this span. The example
/// `full_agent` has one for `tracing-opentelemetry`.
///
/// # Examples
///
/// A backend that numbers spans:
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use rockbot_core::TraceContext;
/// use rockbot_host::telemetry::TraceBridge;
/// use tracing::Span;
///
/// struct Numbers(AtomicU64);
///
/// impl TraceBridge for Numbers {
///     fn join(&self, _: &Span, parent: Option<&TraceContext>) -> Option<TraceContext> {
///         let trace_id = parent.map_or(1, TraceContext::trace_id);
///         TraceContext::new(trace_id, self.0.fetch_add(1, Ordering::Relaxed), true)
///     }
/// }
/// ```
pub trait TraceBridge: Send + Sync + 'static {
    /// Returns the position of `span`, which was just created and not entered yet. With `parent`, a
    /// span of another program or of an earlier stretch of work, it first makes the span a child of
    /// `parent`; without `parent`, the span stays a child of the current span.
    ///
    /// Returns `None` if the backend does not record the span; the host then assigns ids of its own.
    fn join(&self, span: &Span, parent: Option<&TraceContext>) -> Option<TraceContext>;
}

/// The source of the positions of one host's spans.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<dyn TraceBridge>>);

impl Traces {
    /// Creates the source of a host with a bridge.
    pub(crate) fn of(bridge: impl TraceBridge) -> Self {
        Self(Some(Arc::new(bridge)))
    }

    /// Places `span` below `parent`; without, the span begins a trace, unless a bridge knows the
    /// current span.
    pub(crate) fn place(&self, span: &Span, parent: Option<&TraceContext>) -> TraceContext {
        let place = self.joined(span, parent).unwrap_or_else(|| below(parent));
        note(span, &place);
        place
    }

    /// Returns the context of the call whose span is `span`: `cx` with the position of the span.
    ///
    /// A bridge keeps the span below the current one, which may be a layer's, if there is one.
    pub(crate) fn enter(&self, span: &Span, cx: &CallContext) -> CallContext {
        let remote = cx.trace().filter(|_| Span::current().is_none());
        let place = self.joined(span, remote).unwrap_or_else(|| below(cx.trace()));
        note(span, &place);
        cx.clone().with_trace(place)
    }

    fn joined(&self, span: &Span, parent: Option<&TraceContext>) -> Option<TraceContext> {
        self.0.as_ref()?.join(span, parent)
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("has_bridge", &self.0.is_some()).finish()
    }
}

fn below(parent: Option<&TraceContext>) -> TraceContext {
    parent.map_or_else(TraceContext::begin, TraceContext::child)
}

/// Records the position on its span, so that lines of a log lead to the trace.
fn note(span: &Span, place: &TraceContext) {
    if !span.is_disabled() {
        span.record("trace_id", format_args!("{:032x}", place.trace_id()));
        span.record("span_id", format_args!("{:016x}", place.span_id()));
    }
}
