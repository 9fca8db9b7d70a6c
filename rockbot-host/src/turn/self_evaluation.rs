//! What follows an answer in words: it ends the turn, unless something is wrong or missing.

use rockbot_core::chat::{ChatErrorKind, ChatMessage, ChatResponse, OutputSchema};
use rockbot_core::turn::{TurnFailure, TurnStatus};
use rockbot_core::{Timestamp, ToolName};

use super::event::{Purpose, TurnCounter, TurnStep};
use super::machine::Turn;
use super::policy::{Nudge, answer, ending, evaluate, follow_up, nudge};

/// Tools that hand work to somebody else, who reports later: their turns are not judged by what was done so far.
const DELEGATING: [&str; 3] = ["spawn_subagent", "invoke_agent", "spawn_wisps"];

/// What came of looking at a turn's answers once more.
#[derive(Debug, Clone, Default)]
pub(super) struct SelfEvaluation {
    nudged: Vec<Nudge>,
    reprompts: u32,
    follow_ups: u32,
    /// The complete answer, while something more is done.
    pub(super) original: Option<String>,
    /// How many calls had ended before that.
    called_before: usize,
}

impl SelfEvaluation {
    /// Notes what the model is asked: after `answer`, if more is to be done after it, and after `called` calls.
    pub(super) fn note(&mut self, purpose: &Purpose, answer: Option<String>, called: usize) {
        match purpose {
            Purpose::Retry(nudge) => self.nudged.push(*nudge),
            Purpose::Continue { .. } => self.reprompts += 1,
            Purpose::FollowUp { .. } => {
                self.follow_ups += 1;
                self.original = answer;
                self.called_before = called;
            }
            _ => {}
        }
    }
}

/// A question aside: its messages, and the shape of its answer.
pub(crate) struct OutOfBand {
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) shape: OutputSchema,
}

impl Turn {
    pub(super) fn answered(&self, purpose: &Purpose, response: &ChatResponse, at: Timestamp) -> Vec<TurnStep> {
        if !self.calls.is_empty() {
            return self.call_or_park(at);
        }
        match purpose {
            Purpose::Conclude(limit) => self.forced(ending::concluded(*limit, &response.text, &self.finished)),
            Purpose::Evaluate(_) => self.evaluated(&response.text),
            Purpose::AssessFollowUp => self.assessed(&response.text),
            // A message joined while the model wrote: its answer comes first.
            _ if purpose.has_tools() && !self.said.is_empty() => vec![self.ask()],
            _ => self.settle(response),
        }
    }

    /// The model could not be asked. What it said before stands.
    pub(super) fn failed(&self, purpose: &Purpose, kind: ChatErrorKind, message: &str) -> Vec<TurnStep> {
        match purpose {
            Purpose::Conclude(limit) => vec![ending::without_model(*limit, &self.finished)],
            Purpose::Evaluate(_) => self.follow_up(done()),
            Purpose::AssessFollowUp | Purpose::Continue { .. } => done(),
            _ if self.self_evaluation.original.is_some() => vec![self.original()],
            _ => vec![ending::model_failed(kind, message)],
        }
    }

    /// Ends the turn with an answer, unless it is none yet, has the wrong shape, or deserves a second look.
    fn settle(&self, response: &ChatResponse) -> Vec<TurnStep> {
        let (is_last, shape) = (self.limit().is_some(), self.request.output.as_ref());
        let nudge = self.nudge(response).filter(|_| !is_last && shape.is_none());
        if let Some(nudge) = nudge {
            return vec![TurnStep::AskModel(Purpose::Retry(nudge))];
        }
        let left = match is_last {
            true => 0,
            false => self.policy.max_shape_attempts.saturating_sub(self.shape_attempts),
        };
        let settled = answer::settle(response, shape, left);
        match settled.last() {
            Some(TurnStep::Finish { status, .. }) if *status == TurnStatus::Answered && shape.is_none() => {
                self.look_again(&response.text, settled)
            }
            // Nothing more was said: what was said before stands.
            Some(TurnStep::Finish { status, .. })
                if *status == TurnStatus::Failed(TurnFailure::NoAnswer) && self.self_evaluation.original.is_some() =>
            {
                vec![self.original()]
            }
            _ => settled,
        }
    }

    /// What the model is to be told about its answer before the turn ends with it.
    fn nudge(&self, response: &ChatResponse) -> Option<Nudge> {
        let words = nudge::Words {
            text: &response.text,
            asked: &self.request.text,
            has_tools: self.has_tools,
            calls: &self.finished,
        };
        nudge::of(&words, &self.policy.nudges, &self.self_evaluation.nudged)
    }

    /// Has a complete answer judged, where there is a reason to.
    fn look_again(&self, text: &str, settled: Vec<TurnStep>) -> Vec<TurnStep> {
        if let Some(original) = &self.self_evaluation.original {
            let called = self.worked_calls() > self.self_evaluation.called_before;
            return finish(follow_up::reply(original, text, called));
        }
        let answer = evaluate::Answer {
            asked: &self.request.text,
            text,
            has_tools: self.has_tools,
            called: self.worked_calls() > 0,
            changed: self.so_far.mutating_calls > 0,
        };
        let may = self.self_evaluation.reprompts < self.policy.evaluation.max_completion_reprompts;
        let may = may && self.may_look();
        match may.then(|| evaluate::trigger(&answer)).flatten() {
            Some(trigger) => vec![TurnStep::AskModel(Purpose::Evaluate(trigger))],
            None => self.follow_up(settled),
        }
    }

    fn evaluated(&self, verdict: &str) -> Vec<TurnStep> {
        match evaluate::missing(verdict) {
            Some(reason) if self.limit().is_none() => vec![
                TurnStep::Count(TurnCounter::CompletionIncomplete),
                TurnStep::Gather(format!("{} {reason}", self.request.text)),
                TurnStep::AskModel(Purpose::Continue { reason }),
            ],
            _ => {
                let mut steps = vec![TurnStep::Count(TurnCounter::CompletionComplete)];
                steps.extend(self.follow_up(done()));
                steps
            }
        }
    }

    /// Has a complete answer followed up, where that is worth a thought.
    fn follow_up(&self, settled: Vec<TurnStep>) -> Vec<TurnStep> {
        let left = self
            .policy
            .evaluation
            .max_follow_up_passes
            .saturating_sub(self.self_evaluation.follow_ups);
        let worth_it = follow_up::is_worth_it(&self.request, self.worked_calls() > 0);
        match left > 0 && self.has_tools && worth_it && self.may_look() {
            true => vec![TurnStep::AskModel(Purpose::AssessFollowUp)],
            false => settled,
        }
    }

    fn assessed(&self, verdict: &str) -> Vec<TurnStep> {
        match follow_up::opportunity(verdict) {
            Some(prompt) if self.limit().is_none() => vec![
                TurnStep::Count(TurnCounter::FollowUpTriggered),
                TurnStep::Gather(prompt.clone()),
                TurnStep::AskModel(Purpose::FollowUp { prompt }),
            ],
            _ => {
                let mut steps = vec![TurnStep::Count(TurnCounter::FollowUpNone)];
                steps.extend(done());
                steps
            }
        }
    }

    /// Whether a judge may be asked: the budget allows it, and nobody else works on the request.
    fn may_look(&self) -> bool {
        let delegates = |tool: &ToolName| DELEGATING.contains(&tool.as_str());
        self.limit().is_none() && !self.finished.iter().any(|call| delegates(&call.tool))
    }

    /// An end that leaves no room for a second look.
    pub(super) fn forced(&self, end: TurnStep) -> Vec<TurnStep> {
        let evaluation = &self.policy.evaluation;
        let judged = (evaluation.max_completion_reprompts > 0).then_some(TurnCounter::CompletionSkipped);
        let followed = (evaluation.max_follow_up_passes > 0).then_some(TurnCounter::FollowUpSkipped);
        let marks = judged.into_iter().chain(followed).map(TurnStep::Count);
        marks.chain([end]).collect()
    }

    /// The end with the answer that was complete before something more was tried.
    pub(super) fn original(&self) -> TurnStep {
        TurnStep::Finish {
            status: TurnStatus::Answered,
            text: self.self_evaluation.original.clone(),
        }
    }

    /// What a cheap model is asked aside; `None` when `purpose` is no such question.
    pub(crate) fn aside(&self, purpose: &Purpose) -> Option<OutOfBand> {
        let turn = self.messages.get(self.begun_with..).unwrap_or_default();
        match purpose {
            Purpose::Evaluate(_) => Some(OutOfBand {
                messages: evaluate::question(&self.request.text, turn, &self.last_answer()),
                shape: evaluate::verdict_shape(),
            }),
            Purpose::AssessFollowUp => Some(OutOfBand {
                messages: follow_up::question(&self.messages),
                shape: follow_up::verdict_shape(),
            }),
            _ => None,
        }
    }
}

/// The end with the model's last answer.
fn done() -> Vec<TurnStep> {
    vec![TurnStep::Finish {
        status: TurnStatus::Answered,
        text: None,
    }]
}

fn finish(text: String) -> Vec<TurnStep> {
    vec![TurnStep::Finish {
        status: TurnStatus::Answered,
        text: Some(text),
    }]
}
