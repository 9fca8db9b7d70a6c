//! Consultation: the points of the loop where policies of the host's program are asked, and the
//! meaning of their decisions.

use std::borrow::Cow;

use rockbot_core::chat::{ChatMessage, Content, ContextReason, Provenance, Role};
use rockbot_core::turn::{LoopDecision, TurnFailure, TurnStatus};

use super::ending;
use crate::turn::{Purpose, TurnStep};

/// The result that the model reads for a call that a policy stopped.
const NOT_RUN: &str = "not run: the host asks for another answer first.";

/// Text of a turn that a policy ended without a text.
const ENDED: &str = "This request was ended by a policy of the agent.";

/// Reports whether policies are asked about a question and its answer: not about a judge's, and
/// not about the last answer that a reached limit forces. Nothing is left to decide after it.
pub(in crate::turn) fn is_point(purpose: &Purpose) -> bool {
    !purpose.is_out_of_band() && !matches!(purpose, Purpose::Conclude(_))
}

/// Returns the result of a call that does not run because the model is asked for `purpose` instead.
pub(in crate::turn) fn not_run(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::Policy { .. } => NOT_RUN,
        _ => ending::NOT_RUN,
    }
}

/// Ends the turn if a policy decided so.
pub(in crate::turn) fn end(decision: &LoopDecision) -> Option<TurnStep> {
    let (status, text) = match decision {
        LoopDecision::Answer(answer) => (TurnStatus::Answered, answer_text(answer)),
        LoopDecision::Fail(text) => (TurnStatus::Failed(TurnFailure::Policy), Cow::Borrowed(&**text)),
        _ => return None,
    };
    let text = if text.trim().is_empty() { ENDED.into() } else { text };
    Some(TurnStep::finish_with(status, text))
}

/// Returns the words of an answer. An answer of images alone gets their description, since every
/// reply has words.
fn answer_text(answer: &Content) -> Cow<'_, str> {
    let text = answer.text();
    if text.trim().is_empty() { answer.words() } else { text }
}

/// Returns a policy's message for the model.
pub(in crate::turn) fn message(content: Content) -> ChatMessage {
    ChatMessage::new(Role::User, content, Provenance::HOST).because(ContextReason::Policy)
}
