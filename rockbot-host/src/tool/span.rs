//! The span of one tool call.

use rockbot_core::support::loggable;
use rockbot_core::tool::{ToolInvokeRequest, ToolInvokeResponse};
use tracing::Span;
use tracing::field::Empty;

/// Creates the span of a call. The fields that are known only at its end are empty; `otel.name`
/// holds the tool's name, because the name of a span itself is fixed at compile time.
pub(super) fn span(request: &ToolInvokeRequest) -> Span {
    // Names and ids are the model's words: they may hold line breaks or terminal escapes.
    let name = loggable(request.tool_name.as_str());
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {name}"),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %name,
        gen_ai.tool.call.id = %loggable(request.tool_call_id.as_str()),
        gen_ai.tool.type = "function",
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        trace_id = Empty,
        span_id = Empty,
        error.type = Empty,
    )
}

/// A tool call with an enabled span. A call that is dropped before its end is recorded as
/// cancelled.
pub(super) struct CallSpan {
    pub(super) span: Span,
    captures_content: bool,
    has_ended: bool,
}

impl CallSpan {
    /// Begins to record the call of `request`.
    pub(super) fn begin(span: Span, captures_content: bool, request: &ToolInvokeRequest) -> Self {
        if captures_content {
            span.record("gen_ai.tool.call.arguments", &*request.arguments);
        }
        Self {
            span,
            captures_content,
            has_ended: false,
        }
    }

    /// Records the end of the call.
    pub(super) fn end(mut self, response: &ToolInvokeResponse) {
        self.has_ended = true;
        if self.captures_content {
            self.span.record("gen_ai.tool.call.result", &*response.content.words());
        }
        if response.is_error {
            // A failure that the tool itself reports has no code.
            self.failed(response.code.map_or("tool_error", |code| code.name()));
        }
    }

    fn failed(&self, error: &'static str) {
        self.span.record("error.type", error);
        self.span.record("otel.status_code", "ERROR");
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.has_ended {
            self.failed("cancelled");
        }
    }
}
