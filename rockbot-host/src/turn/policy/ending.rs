//! The end of a turn that cannot end with its answer: a reply that states the reason and lists
//! the calls that were done.

use rockbot_core::chat::ChatErrorKind;
use rockbot_core::turn::{BudgetLimit, FinishedCall, TurnFailure, TurnStatus};

use crate::turn::{CancelReason, TurnStep};

/// The result that the model reads for a call that never ran because the turn ended.
pub(in crate::turn) const NOT_RUN: &str = "not run: the turn ended first.";

/// Ends the turn with its last answer, which was made without tools; with the list of calls when
/// that answer is empty.
pub(in crate::turn) fn concluded(limit: BudgetLimit, text: &str, finished: &[FinishedCall]) -> TurnStep {
    if text.trim().is_empty() {
        return without_model(limit, finished);
    }
    TurnStep::finish_with_answer(TurnStatus::Partial(limit))
}

/// Ends the turn when a limit is reached and the last answer failed, too.
pub(in crate::turn) fn without_model(limit: BudgetLimit, finished: &[FinishedCall]) -> TurnStep {
    let why = match limit {
        BudgetLimit::Repetition => "I made the same calls again and again, and their results did not change".to_owned(),
        BudgetLimit::UnknownPrice => "the price of the model is not known, so the limit in money of this request \
             cannot be kept"
            .to_owned(),
        limit => format!("the {limit} for this request was used up"),
    };
    let text = format!("I had to stop because {why}. {}", finished_text(finished));
    TurnStep::finish_with(TurnStatus::Partial(limit), text)
}

/// Ends the turn with a failure, and with the calls that were done before it.
pub(in crate::turn) fn failed(failure: TurnFailure, text: &str, finished: &[FinishedCall]) -> TurnStep {
    let text = format!("{text}{}", done_before(text, finished));
    TurnStep::finish_with(TurnStatus::Failed(failure), text)
}

/// Returns the sentence to append to `text` about the calls that ended; none if there were none.
pub(in crate::turn) fn done_before(text: &str, finished: &[FinishedCall]) -> String {
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    if finished.is_empty() {
        String::new()
    } else {
        format!("{end} {}", finished_text(finished))
    }
}

/// Ends the turn after the model could not be asked, or the program in its place failed.
pub(in crate::turn) fn model_failed(
    kind: ChatErrorKind,
    message: &str,
    is_program: bool,
    finished: &[FinishedCall],
) -> TurnStep {
    let text = if is_program {
        format!("The program failed: {message}")
    } else {
        format!("The model could not be asked: {message}")
    };
    failed(TurnFailure::Model(kind), &text, finished)
}

/// Ends the turn after it was cancelled.
pub(in crate::turn) fn cancelled(reason: CancelReason, finished: &[FinishedCall]) -> TurnStep {
    let (status, why) = match reason {
        CancelReason::Superseded => (TurnStatus::Superseded, "a newer message took its place"),
        CancelReason::Caller => (TurnStatus::Cancelled, "it was cancelled"),
    };
    let text = format!("This request was not finished: {why}. {}", finished_text(finished));
    TurnStep::finish_with(status, text)
}

/// Ends the turn because a guardrail refused its message, or failed.
pub(in crate::turn) fn refused(text: &str, has_failed: bool) -> TurnStep {
    let (status, default) = if has_failed {
        (
            TurnStatus::Failed(TurnFailure::Unchecked),
            "This message was not answered because it could not be checked. Please try again later.",
        )
    } else {
        (TurnStatus::Refused, "This message cannot be answered here.")
    };
    let text = if text.trim().is_empty() { default } else { text };
    TurnStep::finish_with(status, text)
}

/// Number of consecutive rounds of calls with a time-out that ends the turn. The first time-out
/// may be chance, and the model may choose another tool; after a second time-out the user should
/// not wait any longer.
pub(in crate::turn) const MAX_TIMED_OUT_ROUNDS: u32 = 2;

/// Ends the turn after tools exceeded their time limits in several rounds in a row.
pub(in crate::turn) fn tools_timed_out(finished: &[FinishedCall]) -> TurnStep {
    let text = format!(
        "The services that I need for this do not respond in time. Please try again in a few minutes. {}",
        finished_text(finished)
    );
    TurnStep::finish_with(TurnStatus::Failed(TurnFailure::ToolsTimedOut), text)
}

/// Describes the calls that ended.
pub(super) fn finished_text(finished: &[FinishedCall]) -> String {
    if finished.is_empty() {
        return "Nothing had been done yet.".to_owned();
    }
    let name = |call: &FinishedCall| {
        let end = match (call.is_outcome_unknown, call.is_error) {
            (true, _) => " (it is not known whether it took effect)",
            (false, true) => " (failed)",
            (false, false) => "",
        };
        format!("{}{end}", call.tool)
    };
    let calls: Vec<_> = finished.iter().map(name).collect();
    format!("Done before that: {}.", calls.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_may_have_taken_effect_is_not_called_failed() {
        let calls = [
            FinishedCall::new("1", "look", false),
            FinishedCall::new("2", "open", true),
            FinishedCall::new("3", "pay", true).with_outcome_unknown(true),
        ];
        let expected = "Done before that: look, open (failed), pay (it is not known whether it took effect).";
        assert_eq!(finished_text(&calls), expected);
        assert_eq!(finished_text(&[]), "Nothing had been done yet.");
    }
}
