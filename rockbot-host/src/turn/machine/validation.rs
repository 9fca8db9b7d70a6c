//! Validation: the output validators of the host's program check the answer that is to end the
//! turn.

use rockbot_core::turn::{FinalAnswer, LoopDecision, TurnFailure, TurnStatus};

use super::Turn;
use crate::turn::event::{TurnEvent, Validation};
use crate::turn::policy::ending;
use crate::turn::step::{Purpose, TurnCounter, TurnStep};

/// Text of a turn whose answer could not be checked. The error is in the log: it is not the user's.
const UNCHECKED: &str = "The answer is withheld because it could not be checked. Please try again later.";

impl Turn {
    /// Has an answer of the model checked before the turn ends with it.
    pub(super) fn validate_before_end(&self, event: &TurnEvent, mut steps: Vec<TurnStep>) -> Vec<TurnStep> {
        if self.policy.hooks.has_validators
            && !is_decided(event)
            && steps.last().is_some_and(is_answer)
            && let Some(TurnStep::Finish { status, text }) = steps.pop()
        {
            steps.push(TurnStep::Validate { status, text });
        }
        steps
    }

    /// Continues after the verdict on the answer that is to end the turn.
    pub(super) fn validated(&self, status: &TurnStatus, text: Option<&String>, verdict: &Validation) -> Vec<TurnStep> {
        match verdict {
            Validation::Accepted | Validation::Unasked => vec![TurnStep::Finish {
                status: status.clone(),
                text: text.cloned(),
            }],
            Validation::Complained(complaint) => {
                let complaint = complaint.clone();
                let next = if self.may_correct(status) {
                    TurnStep::AskModel(Purpose::Correct { complaint })
                } else {
                    self.rejected(complaint)
                };
                vec![TurnStep::Count(TurnCounter::OutputRejected), next]
            }
            Validation::Failed(_) => {
                vec![ending::failed(TurnFailure::Unchecked, UNCHECKED, &self.finished)]
            }
        }
    }

    /// Reports whether the model may answer again, after its answer was to end the turn with `status`.
    pub(super) fn may_correct(&self, status: &TurnStatus) -> bool {
        *status == TurnStatus::Answered
            && self.corrections < self.policy.hooks.max_corrections
            && self.end_reason.is_none()
            && self.limit().is_none()
    }

    fn rejected(&self, complaint: String) -> TurnStep {
        let text = format!("The model gave no answer that could be accepted: {complaint}");
        ending::failed(TurnFailure::Rejected { complaint }, &text, &self.finished)
    }

    /// Returns the answer that validators check: `text`, or the model's last answer.
    pub(crate) fn final_answer(&self, text: Option<String>) -> FinalAnswer {
        let text = text.unwrap_or_else(|| self.last_answer());
        let shape = self.request.output.as_ref();
        let json = shape.and_then(|_| serde_json::from_str(&text).ok());
        let answer = FinalAnswer::new(text).with_media(self.answer_media.clone());
        match json {
            Some(json) => answer.with_json(json),
            None => answer,
        }
    }
}

/// Reports whether a step ends the turn with a text of the model, and not with a text of the
/// host.
fn is_answer(step: &TurnStep) -> bool {
    match step {
        TurnStep::Finish { status, text } => match status {
            TurnStatus::Answered => true,
            TurnStatus::Partial(_) => text.is_none(),
            _ => false,
        },
        _ => false,
    }
}

/// Reports whether the end that follows an event needs no check: it was checked, or a loop policy
/// worded it.
fn is_decided(event: &TurnEvent) -> bool {
    match event {
        TurnEvent::Validated { .. } => true,
        TurnEvent::Consulted { decision, .. } => matches!(decision, LoopDecision::Answer(_) | LoopDecision::Fail(_)),
        _ => false,
    }
}
