//! How a turn ends when it cannot end with its answer: gracefully, and saying what was done.

use rockbot_core::chat::ChatErrorKind;
use rockbot_core::turn::{BudgetLimit, FinishedCall, TurnFailure, TurnStatus};

use crate::turn::{CancelReason, TurnStep};

/// What the model reads about a call that never ran because the turn ended.
pub(in crate::turn) const NOT_RUN: &str = "not run: the turn ended first.";

/// The last answer, made without tools; the list of what was done when the model said nothing.
pub(in crate::turn) fn concluded(limit: BudgetLimit, text: &str, finished: &[FinishedCall]) -> TurnStep {
    if text.trim().is_empty() {
        return without_model(limit, finished);
    }
    TurnStep::Finish {
        status: TurnStatus::Partial(limit),
        text: None,
    }
}

/// The end when even the last answer failed.
pub(in crate::turn) fn without_model(limit: BudgetLimit, finished: &[FinishedCall]) -> TurnStep {
    let text = format!(
        "I had to stop because the {limit} for this request was used up. {}",
        finished_text(finished)
    );
    TurnStep::Finish {
        status: TurnStatus::Partial(limit),
        text: Some(text),
    }
}

/// The end when the model could not be asked.
pub(in crate::turn) fn model_failed(kind: ChatErrorKind, message: &str) -> TurnStep {
    let text = format!("The model could not be asked: {message}");
    TurnStep::Finish {
        status: TurnStatus::Failed(TurnFailure::Model(kind)),
        text: Some(text),
    }
}

/// The end when nobody wants the answer any more.
pub(in crate::turn) fn cancelled(reason: CancelReason, finished: &[FinishedCall]) -> TurnStep {
    let (status, why) = match reason {
        CancelReason::Superseded => (TurnStatus::Superseded, "a newer message took its place"),
        CancelReason::Caller => (TurnStatus::Cancelled, "it was cancelled"),
    };
    let text = format!("This request was not finished: {why}. {}", finished_text(finished));
    TurnStep::Finish {
        status,
        text: Some(text),
    }
}

/// How many rounds of calls in a row may have one that takes too long.
pub(in crate::turn) const TIMED_OUT_ROUNDS: u32 = 2;

/// The end when tools do not answer in time, again and again.
pub(in crate::turn) fn tools_timed_out(finished: &[FinishedCall]) -> TurnStep {
    let text = format!(
        "The services that I need for this do not respond in time. Please try again in a few minutes. {}",
        finished_text(finished)
    );
    TurnStep::Finish {
        status: TurnStatus::Failed(TurnFailure::ToolsTimedOut),
        text: Some(text),
    }
}

/// What was done, in words.
pub(super) fn finished_text(finished: &[FinishedCall]) -> String {
    if finished.is_empty() {
        return "Nothing had been done yet.".to_owned();
    }
    let name = |call: &FinishedCall| format!("{}{}", call.tool, if call.is_error { " (failed)" } else { "" });
    let calls: Vec<_> = finished.iter().map(name).collect();
    format!("Done before that: {}.", calls.join(", "))
}
