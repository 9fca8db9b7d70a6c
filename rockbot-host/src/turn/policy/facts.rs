//! The facts for the policies that decide after an answer.
//!
//! The machine receives facts about calls with the model's answer (effect, approval, delegation,
//! whole results), and the journal keeps them: a resume decides on the facts of that time, even
//! if the tool has changed. Only the approval gate asks the tool again, because it must hold for
//! the tool that runs.

use std::sync::Arc;

use rockbot_core::chat::ChatMessage;
use rockbot_core::turn::{FinishedCall, TurnRequest, TurnStatus};

use super::tasks;
use crate::turn::{Nudge, PolicySnapshot, Purpose, TurnStep};

/// The state of a turn that the policies after an answer may read.
pub(in crate::turn) struct AnswerFacts<'a> {
    pub(in crate::turn) request: &'a TurnRequest,
    pub(in crate::turn) settings: &'a PolicySnapshot,
    /// The calls that ended, the oldest first.
    pub(in crate::turn) calls: &'a [FinishedCall],
    /// The messages of the conversation, with the results of these calls.
    pub(in crate::turn) messages: &'a [Arc<ChatMessage>],
    /// Number of these calls that the last answer with calls made.
    pub(in crate::turn) round_len: usize,
    /// `true` when a call among them changed something.
    pub(in crate::turn) has_changes: bool,
    /// `true` when a call among them delegated work to another agent, which reports later. The
    /// calls of such a turn do not show the result of that work, so neither its completeness nor
    /// its follow-up can be judged yet.
    pub(in crate::turn) has_delegated: bool,
    /// `true` when the model could have called a tool.
    pub(in crate::turn) has_tools: bool,
    /// `true` when a limit forbids another question to the model.
    pub(in crate::turn) is_last: bool,
    pub(in crate::turn) shape_attempts: u32,
    pub(in crate::turn) progress: &'a EvaluationProgress,
}

impl AnswerFacts<'_> {
    /// Returns the calls that the last answer with calls made.
    pub(super) fn round(&self) -> &[FinishedCall] {
        &self.calls[self.calls.len().saturating_sub(self.round_len)..]
    }

    /// Returns the number of calls that did work, without the model's bookkeeping.
    pub(super) fn work_calls(&self) -> usize {
        work_calls(self.calls)
    }

    /// Reports whether a judge may be asked: a user asked for the turn, the budget allows it, and no
    /// other agent still works on the request.
    ///
    /// A schedule or a parent turn asks for exactly one thing and reads the answer as its result,
    /// so a judge of its own would only prolong it: the parent's answer is judged. The calls of a
    /// turn that delegated do not show the result of that work, so the turn cannot be judged yet.
    pub(super) fn may_ask_judge(&self) -> bool {
        self.request.is_user_message() && !self.is_last && !self.has_delegated
    }
}

fn work_calls(calls: &[FinishedCall]) -> usize {
    calls.iter().filter(|call| is_work(call)).count()
}

/// Reports whether a call was work towards the request.
///
/// The model's notes to itself and its progress reports are not: a turn with no other calls has
/// not acted yet.
pub(in crate::turn) fn is_work(call: &FinishedCall) -> bool {
    const BOOKKEEPING: [&str; 15] = [
        tasks::CREATE,
        tasks::UPDATE,
        "activate_tools",
        "save_memory",
        "search_memory",
        "edit_memory",
        "archive_memory",
        // The name of `archive_memory` in journals of older versions: a replay must count as they did.
        "delete_memory",
        "update_memory_importance",
        "save_to_working_memory",
        "get_from_working_memory",
        "search_working_memory",
        "edit_working_memory",
        "delete_from_working_memory",
        "report_progress",
    ];
    !BOOKKEEPING.contains(&call.tool.as_str())
}

/// The record of the nudges, reprompts and follow-ups that a turn has had.
#[derive(Debug, Clone, Default)]
pub(in crate::turn) struct EvaluationProgress {
    /// Each nudge is given once in a turn: a model that ignores it would ignore it again.
    pub(super) nudged: Vec<Nudge>,
    pub(super) reprompts: u32,
    pub(super) follow_ups: u32,
    /// The complete answer, while a follow-up runs.
    pub(super) first_answer: Option<String>,
    /// Number of calls that had done work before the follow-up.
    pub(super) calls_before: usize,
}

impl EvaluationProgress {
    /// Applies a question to the model, asked after `answer` when it is about a follow-up, and after
    /// `calls`.
    pub(in crate::turn) fn apply(&mut self, purpose: &Purpose, answer: Option<String>, calls: &[FinishedCall]) {
        match purpose {
            Purpose::Retry(nudge) => self.nudged.push(*nudge),
            Purpose::Continue { .. } => self.reprompts += 1,
            Purpose::FollowUp { .. } => {
                self.follow_ups += 1;
                // After the first follow-up, the judge was asked about all of the answer so far, which stays.
                self.first_answer = self.first_answer.take().or(answer);
                self.calls_before = work_calls(calls);
            }
            // Asked once more after a follow-up, whose text is part of the answer now.
            Purpose::AssessFollowUp => {
                let has_calls = work_calls(calls) > self.calls_before;
                let both = |first: &String| Some(followed_up(first, answer.as_ref()?, has_calls));
                self.first_answer = self.first_answer.as_ref().and_then(both);
            }
            // The answer that was complete before a follow-up is part of the text that was sent
            // back.
            Purpose::Policy { .. } | Purpose::Correct { .. } => self.first_answer = None,
            _ => {}
        }
    }

    /// Returns the complete answer before a follow-up.
    pub(in crate::turn) fn first_answer(&self) -> Option<&str> {
        self.first_answer.as_deref()
    }

    /// Reports whether a complete answer exists, and a follow-up runs after it.
    pub(in crate::turn) fn has_first_answer(&self) -> bool {
        self.first_answer.is_some()
    }

    /// Ends the turn with the answer that was complete before the follow-up.
    pub(in crate::turn) fn finish_with_first(&self) -> TurnStep {
        TurnStep::Finish {
            status: TurnStatus::Answered,
            text: self.first_answer.clone(),
        }
    }
}

/// Returns the answer after a follow-up: the first answer, and the follow-up's text if it called
/// tools and was not a refusal.
pub(super) fn followed_up(original: &str, follow_up: &str, has_calls: bool) -> String {
    let follow_up = follow_up.trim();
    if has_calls && !follow_up.is_empty() && !refuses(follow_up) {
        format!("{original}\n\n{follow_up}")
    } else {
        original.to_owned()
    }
}

fn refuses(text: &str) -> bool {
    const WORDS: [&str; 6] = [
        "i can't",
        "i cannot",
        "i'm unable",
        "i am unable",
        "don't have access",
        "not able to",
    ];
    let text = text.to_lowercase().replace('’', "'");
    WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follow_up_that_did_nothing_is_not_shown() {
        assert_eq!(followed_up("A.", " B. ", true), "A.\n\nB.");
        assert_eq!(followed_up("A.", "B.", false), "A.");
        assert_eq!(followed_up("A.", "I can’t do that.", true), "A.");
        assert_eq!(followed_up("A.", "", true), "A.");
    }
}
