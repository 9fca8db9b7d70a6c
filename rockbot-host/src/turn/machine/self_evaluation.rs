//! An answer without tool calls: it ends the turn, unless a policy finds something wrong or
//! missing.

use rockbot_core::Timestamp;
use rockbot_core::chat::{ChatErrorKind, ChatMessage, ChatResponse, Content, OutputSchema};
use rockbot_core::turn::TurnStatus;

use super::Turn;
use crate::turn::policy::{AFTER_ANSWER, AnswerFacts, answer, ending, evaluate, follow_up};
use crate::turn::step::{Purpose, TurnCounter, TurnStep};

/// An out-of-band question to a judge, which is no part of the conversation.
pub(crate) struct OutOfBand {
    pub(crate) messages: Vec<ChatMessage>,
    /// The shape of the verdict.
    pub(crate) shape: OutputSchema,
}

impl Turn {
    /// Continues after an answer of the model, or of a judge.
    pub(super) fn answered(&self, purpose: &Purpose, response: &ChatResponse, at: Timestamp) -> Vec<TurnStep> {
        if !self.calls.is_empty() {
            return self.call_or_park(at);
        }
        match purpose {
            Purpose::Conclude(limit) => self.end_unevaluated(ending::concluded(*limit, &response.text, &self.finished)),
            Purpose::Evaluate(_) => self.judged(&response.text),
            Purpose::AssessFollowUp => self.assessed(&response.text),
            // A message joined while the model wrote: the answer cannot have considered it.
            _ if purpose.has_tools() && !self.unread.is_empty() => vec![self.ask()],
            _ => self.examine(response),
        }
    }

    /// Continues after a call to the model failed. An answer that exists already stands.
    pub(super) fn failed(&self, purpose: &Purpose, kind: ChatErrorKind, message: &str) -> Vec<TurnStep> {
        match purpose {
            Purpose::Conclude(limit) => vec![ending::without_model(*limit, &self.finished)],
            // A judge that fails counts as satisfied: an answer must not depend on its judge.
            Purpose::Evaluate(_) => vec![self.follow_up_or_finish()],
            _ if self.evaluation.has_first_answer() => vec![self.evaluation.finish_with_first()],
            Purpose::AssessFollowUp | Purpose::Continue { .. } => vec![finish()],
            _ => vec![ending::model_failed(
                kind,
                message,
                self.policy.is_program,
                &self.finished,
            )],
        }
    }

    /// Asks the policies about an answer in their order; without an objection the answer ends the turn.
    fn examine(&self, response: &ChatResponse) -> Vec<TurnStep> {
        let facts = self.answer_facts();
        match AFTER_ANSWER.iter().find_map(|policy| policy(&facts, response)) {
            Some(step) => vec![step],
            None => answer::accept(response),
        }
    }

    /// Continues after the verdict on an answer.
    fn judged(&self, verdict: &str) -> Vec<TurnStep> {
        if let Some(reason) = evaluate::missing(verdict)
            && self.limit().is_none()
        {
            return vec![
                TurnStep::Count(TurnCounter::CompletionIncomplete),
                // The agent's knowledge about the missing part was not asked for before.
                TurnStep::Gather(format!("{} {reason}", self.request.content.words())),
                TurnStep::AskModel(Purpose::Continue { reason }),
            ];
        }
        vec![
            TurnStep::Count(TurnCounter::CompletionComplete),
            self.follow_up_or_finish(),
        ]
    }

    fn follow_up_or_finish(&self) -> TurnStep {
        follow_up::ask_judge(&self.answer_facts()).unwrap_or_else(finish)
    }

    /// Continues after the judge's opinion whether more is worth doing.
    fn assessed(&self, verdict: &str) -> Vec<TurnStep> {
        if let Some(prompt) = follow_up::opportunity(verdict)
            && self.limit().is_none()
        {
            return vec![
                TurnStep::Count(TurnCounter::FollowUpTriggered),
                TurnStep::Gather(prompt.clone()),
                TurnStep::AskModel(Purpose::FollowUp { prompt }),
            ];
        }
        let end = if self.evaluation.has_first_answer() {
            self.evaluation.finish_with_first()
        } else {
            finish()
        };
        vec![TurnStep::Count(TurnCounter::FollowUpNone), end]
    }

    fn answer_facts(&self) -> AnswerFacts<'_> {
        AnswerFacts {
            request: &self.request,
            settings: &self.policy,
            calls: &self.finished,
            messages: &self.messages,
            round_len: self.round_len,
            has_changes: self.activity.mutating_calls > 0,
            has_delegated: self.has_delegated,
            has_tools: self.has_tools,
            is_last: self.limit().is_some(),
            shape_attempts: self.shape_attempts,
            progress: &self.evaluation,
        }
    }

    /// Ends the turn without an evaluation, and counts the evaluations that were skipped.
    pub(super) fn end_unevaluated(&self, end: TurnStep) -> Vec<TurnStep> {
        let evaluation = &self.policy.evaluation;
        let judged = (evaluation.max_completion_reprompts > 0).then_some(TurnCounter::CompletionSkipped);
        let counters = judged
            .into_iter()
            .chain([TurnCounter::FollowUpSkipped])
            .map(TurnStep::Count);
        counters.chain([end]).collect()
    }

    /// Returns the question to a judge; `None` when `purpose` is not out-of-band.
    pub(crate) fn out_of_band(&self, purpose: &Purpose) -> Option<OutOfBand> {
        let question = match purpose {
            Purpose::Evaluate(_) => evaluate::question,
            Purpose::AssessFollowUp => follow_up::question,
            _ => return None,
        };
        let asked: Vec<_> = self.said_by_user().map(Content::words).collect();
        let answer = self
            .evaluation
            .first_answer()
            .map_or_else(|| self.last_answer(), str::to_owned);
        Some(OutOfBand {
            messages: question(&asked.join("\n\n"), self.own_messages(), &answer),
            shape: match purpose {
                Purpose::Evaluate(_) => evaluate::verdict_shape(),
                _ => follow_up::verdict_shape(),
            },
        })
    }
}

/// Ends the turn with the model's last answer.
fn finish() -> TurnStep {
    TurnStep::finish_with_answer(TurnStatus::Answered)
}
