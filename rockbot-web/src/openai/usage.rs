//! The ends of turns in OpenAI's words: usage, and the reason why an answer ended.

use axum::http::StatusCode;
use rockbot_core::chat::Usage;
use rockbot_core::turn::{BudgetLimit, TurnFailure, TurnOutcome, TurnStatus};
use serde_json::{Value, json};

use crate::error::WebError;

/// Returns the usage of a turn, as chat completions name it.
pub(super) fn of_chat(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

/// Returns the usage of a turn, as responses name it.
pub(super) fn of_response(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

/// Returns the reason why an answer ended.
pub(super) fn finish_reason(outcome: &TurnOutcome) -> &'static str {
    match outcome.status {
        TurnStatus::Partial(BudgetLimit::ContentFilter) => "content_filter",
        TurnStatus::Partial(_) => "length",
        _ => "stop",
    }
}

/// Adds the statements of an answer that rest on text of others alone to the object that has its
/// text, as the member `outside_statements`, which the protocol does not know.
pub(super) fn mark(object: &mut Value, outcome: &TurnOutcome) {
    if !outcome.outside_statements.is_empty() {
        object["outside_statements"] = json!(outcome.outside_statements);
    }
}

/// Returns the answer, or the error of a turn that ended without an answer.
pub(super) fn answered(outcome: TurnOutcome) -> Result<TurnOutcome, WebError> {
    if outcome.is_answer() {
        return Ok(outcome);
    }
    let text = outcome.text.clone();
    Err(match &outcome.status {
        TurnStatus::Cancelled | TurnStatus::Superseded => WebError::new(StatusCode::CONFLICT, "cancelled", text),
        TurnStatus::Failed(TurnFailure::Model(kind)) if kind.retry_helps() => {
            WebError::unavailable("model_unavailable", text)
        }
        _ => WebError::new(StatusCode::INTERNAL_SERVER_ERROR, "turn_failed", text),
    })
}
