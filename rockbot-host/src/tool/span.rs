//! The span of one tool call.

use rockbot_core::support::loggable;
use rockbot_core::tool::{ToolInvokeRequest, ToolInvokeResponse};
use tracing::Span;
use tracing::field::Empty;

/// The span of `request`, without what only its end knows. It has a name of its own besides the one that is fixed.
pub(super) fn span(request: &ToolInvokeRequest) -> Span {
    // Names and ids are the model's own words.
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
        error.type = Empty,
    )
}

/// A tool call whose span somebody sees. One that is dropped counts as cancelled.
pub(super) struct CallSpan {
    pub(super) span: Span,
    captures_content: bool,
    has_ended: bool,
}

impl CallSpan {
    /// Begins to watch the call of `request`.
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

    /// The call has ended.
    pub(super) fn end(mut self, response: &ToolInvokeResponse) {
        self.has_ended = true;
        if self.captures_content {
            self.span.record("gen_ai.tool.call.result", &*response.content);
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
