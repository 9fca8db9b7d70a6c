//! The span of a turn.

use rockbot_core::TraceContext;
use rockbot_core::chat::ChatErrorKind;
use rockbot_core::support::loggable;
use rockbot_core::turn::{TurnFailure, TurnOutcome, TurnStatus};
use tracing::Span;
use tracing::field::Empty;

use super::{TurnEngine, meters};
use crate::live::LiveTurn;

impl TurnEngine {
    /// Creates the span of a turn, and gives the turn its position in a trace: below the message's
    /// or the caller's, and for a later stretch of work below the earlier stretch.
    pub(super) fn span(&self, live: &LiveTurn) -> Span {
        let span = self.unplaced(live);
        let asked = live.request().trace.as_deref().and_then(TraceContext::parse);
        let parent = live.trace().or(asked);
        live.set_trace(self.traces.place(&span, parent.as_ref()));
        span
    }

    fn unplaced(&self, live: &LiveTurn) -> Span {
        let request = live.request();
        tracing::info_span!(
            "invoke_agent",
            otel.name = format!("invoke_agent {}", self.agent),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = &*self.agent,
            gen_ai.conversation.id = %loggable(request.session.as_str()),
            turn = %live.id(),
            status = Empty,
            traceparent = request.trace.as_deref().map(loggable).map(tracing::field::display),
            trace_id = Empty,
            span_id = Empty,
            error.type = Empty,
        )
    }
}

/// Records on the current span how its turn ended.
pub(super) fn ended(outcome: &TurnOutcome) {
    let span = Span::current();
    span.record("status", meters::name_of(&outcome.status));
    if let TurnStatus::Failed(failure) = &outcome.status {
        span.record("error.type", name_of(failure));
        span.record("otel.status_code", "ERROR");
    }
}

fn name_of(failure: &TurnFailure) -> &'static str {
    match failure {
        TurnFailure::Model(kind) => ChatErrorKind::name(*kind),
        TurnFailure::NoAnswer => "no_answer",
        TurnFailure::Output => "output",
        TurnFailure::ToolsTimedOut => "tools_timed_out",
        TurnFailure::Interrupted => "interrupted",
        TurnFailure::UnknownVersion => "unknown_version",
        TurnFailure::Storage => "storage",
        TurnFailure::Policy => "policy",
        TurnFailure::Rejected { .. } => "rejected",
        TurnFailure::Unchecked => "unchecked",
        _ => "internal",
    }
}
