//! The policies of a turn's loop, one file each: pure functions over plain values.
//!
//! The [machine](super::machine) asks them at fixed points of the loop, in the order of this table:
//!
//! | policy | listens to | decides | setting ([`PolicySnapshot`](super::PolicySnapshot)) |
//! |---|---|---|---|
//! | `resume` | `Resumed` | which calls run again; whether an often interrupted turn is abandoned | `max_resumes` |
//! | `identity` | `ModelAnswered` with calls | unique call ids | |
//! | `approval` | `ModelAnswered` with calls, `ApprovalDecided`, `ApprovalExpired` | `AwaitApproval` | `approval_expiry`; which call needs one is the tool's to state |
//! | `parallel` | the same, `ToolReturned` | `CallTools`: which calls run together | |
//! | `budget` | every question, every group of calls | `AskModel(Conclude)` | `budget` |
//! | `repeat` | `ToolReturned`; `ModelAnswered` with calls | a note on a result that does not change; `RefuseRepeats`, `AskModel(Conclude)` | `nudges` |
//! | `ending` | `Cancelled`, `BudgetSpent`, `ModelFailed`, repeated time-outs | `Finish` without an answer | |
//! | `nudge` | an answer without calls | `AskModel(Retry)` | `nudges` |
//! | `answer` | the same | `AskModel(Shape)`, `Finish` | `max_shape_attempts`, the request's `output` |
//! | `follow_up` | the same, and its judge's verdict | `AskModel(AssessFollowUp)`, `AskModel(FollowUp)` | `evaluation` |
//! | `evaluate` | the same, and its judge's verdict | `AskModel(Evaluate)`, `AskModel(Continue)` | `evaluation` |
//! | `escalate` | every question with tools | `Escalated`: a higher tier | `tier` |
//! | `consult` | every question, every answer, the results of its calls | `Consult`: the host program's own [`LoopPolicy`](rockbot_core::turn::LoopPolicy) | `hooks` |
//! | (`machine/validation`) | every end with an answer of the model | `Validate`: the host program's own [`OutputValidator`](rockbot_core::turn::OutputValidator) | `hooks` |
//! | `compact`, `elide`, `token_estimate` | every question, an overflow | `Compact` | `economy` |
//! | `steer` | `UserSaid` | joined messages, before the next question | the request's `BusyPolicy` |
//! | `tasks` | results of the task tools | the task list at the end of each request | `task_list` |
//!
//! Adding a policy after an answer takes its file, a row above, a place in [`AFTER_ANSWER`], and
//! a field of [`PolicySnapshot`](super::PolicySnapshot) if it has a setting. A policy at another
//! point of the loop takes a call in `machine/`, too. Steps and purposes of a new kind are
//! variants in `step.rs`, which is part of the journal's format.

pub(super) mod answer;
pub(super) mod approval;
pub(super) mod budget;
mod claims;
pub(super) mod compact;
pub(super) mod consult;
pub(super) mod elide;
pub(super) mod ending;
pub(super) mod escalate;
pub(super) mod evaluate;
mod facts;
pub(super) mod follow_up;
pub(super) mod identity;
pub(super) mod nudge;
pub(super) mod parallel;
pub(super) mod repeat;
pub(super) mod resume;
pub(super) mod steer;
pub(crate) mod tasks;
pub(super) mod token_estimate;

use rockbot_core::chat::ChatResponse;

use super::step::TurnStep;

pub(crate) use escalate::higher;
pub(in crate::turn) use facts::{AnswerFacts, EvaluationProgress, is_work};
pub(crate) use resume::{outcome_unknown, uncertain};
pub(crate) use token_estimate::is_window;

/// A policy that examines an answer without tool calls; `None` when it has no objection.
type AnswerPolicy = fn(&AnswerFacts<'_>, &ChatResponse) -> Option<TurnStep>;

/// The policies that examine an answer, in order; the first that returns a step decides. Without
/// one, [`answer::accept`] ends the turn.
///
/// Cheap and certain policies come first: a nudge needs no judge, and a wrong shape is wrong
/// whatever the answer says. A follow-up is completed before anything is judged, since only its
/// first answer had to be complete; and the judge of completeness precedes the judge of
/// follow-ups, which presumes a complete answer.
pub(super) const AFTER_ANSWER: [AnswerPolicy; 5] = [
    nudge::examine,
    answer::examine,
    follow_up::complete,
    evaluate::examine,
    follow_up::examine,
];
