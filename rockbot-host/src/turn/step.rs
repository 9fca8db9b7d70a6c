//! The steps of a turn: the machine's decisions, as the driver performs them and the journal
//! records them.

use rockbot_core::content::Content;
use rockbot_core::turn::{ApprovalRequest, BudgetLimit, TurnStatus};
use rockbot_core::{CallId, Timestamp};
use serde::{Deserialize, Serialize};

use super::compaction::Compaction;

/// An action that the turn asks its driver to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum TurnStep {
    /// Ask the model.
    AskModel(Purpose),
    /// Ask the loop policies of the host's program.
    Consult(Consultation),
    /// Ask the output validators about the answer that is to end the turn.
    Validate {
        /// The status of the outcome, once they have accepted it.
        status: TurnStatus,
        /// The final reply; `None` when it is the model's last answer unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Ask the context sources about this text.
    Gather(String),
    /// Store the originals of these parts of the conversation, and then remove the parts.
    Compact(Compaction),
    /// Run these calls concurrently.
    CallTools(Vec<CallId>),
    /// Refuse these calls of the last answer, which only repeat earlier calls.
    RefuseRepeats(Vec<RepeatedCall>),
    /// Wait for a user's decision about tool calls.
    AwaitApproval {
        /// The calls to decide about.
        asks: Vec<ApprovalRequest>,
        /// The expiry of the approval.
        until: Timestamp,
    },
    /// Report a notice to the subscribers of the turn's progress.
    Emit(String),
    /// Increment a counter.
    Count(TurnCounter),
    /// End the turn.
    Finish {
        /// The status of the outcome.
        status: TurnStatus,
        /// The final reply; `None` when it is the model's last answer unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

impl TurnStep {
    /// Ends the turn with the model's last answer as the reply.
    pub(super) fn finish_with_answer(status: TurnStatus) -> Self {
        Self::Finish { status, text: None }
    }

    /// Ends the turn with `text` as the reply.
    pub(super) fn finish_with(status: TurnStatus, text: impl Into<String>) -> Self {
        let text = Some(text.into());
        Self::Finish { status, text }
    }
}

/// A call that would repeat an earlier call, whose result did not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub(crate) struct RepeatedCall {
    /// The call, which does not run.
    pub call: CallId,
    /// The earlier call, whose result it gets.
    pub earlier: CallId,
}

/// A question to the loop policies of the host's program: the point that they are asked about,
/// and the decisions so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Consultation {
    /// A request to the model, for this purpose.
    BeforeRequest(Purpose),
    /// The answer to a request for this purpose.
    AfterAnswer(Purpose),
    /// The results of the last answer's calls.
    AfterResults,
}

/// A counter of decisions about turns, exported as a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum TurnCounter {
    /// Answers judged complete.
    CompletionComplete,
    /// Answers judged incomplete and sent back to the model.
    CompletionIncomplete,
    /// Answers not judged, because the turn had to end.
    CompletionSkipped,
    /// Complete answers whose judge found something more to do.
    FollowUpTriggered,
    /// Complete answers whose judge found nothing more to do.
    FollowUpNone,
    /// Answers without a follow-up, because the turn had to end.
    FollowUpSkipped,
    /// Compactions of a conversation.
    ContextCompacted,
    /// Answers that a loop policy of the host's program sent back to the model.
    PolicyAskedAgain,
    /// Turns that such a policy ended.
    PolicyEnded,
    /// Questions of such policies that were not asked, because the turn had asked too many.
    PolicyIgnored,
    /// Answers that an output validator did not accept.
    OutputRejected,
}

impl TurnCounter {
    /// Returns the name of the metric.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CompletionComplete => "rockbot.agent.completion_check.complete",
            Self::CompletionIncomplete => "rockbot.agent.completion_check.incomplete",
            Self::CompletionSkipped => "rockbot.agent.completion_check.skipped",
            Self::FollowUpTriggered => "rockbot.agent.follow_up.triggered",
            Self::FollowUpNone => "rockbot.agent.follow_up.none",
            Self::FollowUpSkipped => "rockbot.agent.follow_up.skipped",
            Self::ContextCompacted => "rockbot.agent.context.compacted",
            Self::PolicyAskedAgain => "rockbot.agent.loop_policy.asked_again",
            Self::PolicyEnded => "rockbot.agent.loop_policy.ended",
            Self::PolicyIgnored => "rockbot.agent.loop_policy.ignored",
            Self::OutputRejected => "rockbot.agent.output_validation.rejected",
        }
    }
}

/// The purpose of a question to the model. It determines the instruction, the tools, and the tier
/// of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Purpose {
    /// The next step towards the answer, with tools.
    Answer,
    /// A last answer from the knowledge so far, without tools, because a limit was reached.
    Conclude(BudgetLimit),
    /// The answer again, without tools, in the shape that the request asked for.
    Shape {
        /// The reason why the last answer does not have the shape.
        problem: String,
    },
    /// The next step again, with tools, because the last answer shows a known weakness of models.
    Retry(Nudge),
    /// A judge's verdict on the last answer; out-of-band, on the lowest tier.
    Evaluate(Trigger),
    /// The next step, with tools, because the judge found the last answer incomplete.
    Continue {
        /// The missing part, as the judge named it.
        reason: String,
    },
    /// A judge's opinion whether more is worth doing; out-of-band, on the lowest tier.
    AssessFollowUp,
    /// Additional work, with tools, after a complete answer.
    FollowUp {
        /// The judge's instruction.
        prompt: String,
    },
    /// The next step again, with tools, because a loop policy of the host's program sent the last
    /// answer back.
    Policy {
        /// The message of the policy.
        message: Content,
    },
    /// The answer again, with tools, because an output validator did not accept the last answer.
    Correct {
        /// The complaint.
        complaint: String,
    },
}

impl Purpose {
    /// Returns `true` if the model may call tools.
    pub(crate) fn has_tools(&self) -> bool {
        matches!(
            self,
            Self::Answer
                | Self::Retry(_)
                | Self::Continue { .. }
                | Self::FollowUp { .. }
                | Self::Policy { .. }
                | Self::Correct { .. }
        )
    }

    /// Returns `true` if the model's last answer is taken back: a reader who has seen it is to forget
    /// it.
    pub(crate) fn retracts(&self) -> bool {
        matches!(
            self,
            Self::Shape { .. } | Self::Retry(_) | Self::Continue { .. } | Self::Policy { .. } | Self::Correct { .. }
        )
    }

    /// Returns `true` if the question is out-of-band: asked of a judge, and absent from the
    /// conversation.
    pub(crate) fn is_out_of_band(&self) -> bool {
        matches!(self, Self::Evaluate(_) | Self::AssessFollowUp)
    }
}

/// A weakness of an answer that the model is asked to correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Nudge {
    /// The answer announces a step and does not take it.
    UnfinishedSetUp,
    /// The answer claims an action that never happened.
    HallucinatedCall,
    /// The answer contains the syntax of a tool call as text.
    LeakedSyntax,
    /// The answer is in Chinese or Japanese script although the user's message is not.
    UnexpectedCjk,
    /// The answer gives up over a tool that failed.
    ToolFailureGiveup,
    /// The answer is empty.
    EmptyAnswer,
}

/// The reason why an answer is judged. When several apply, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Trigger {
    /// The answer promises work, and no tool has changed anything.
    PromiseWithoutAction,
    /// The answer claims that something was done, and no tool has changed anything.
    BareClaim,
    /// The answer denies an ability, which a tool may have.
    DeniedCapability,
    /// The user asked for an action, and no tool was called, or for a change, and nothing was changed.
    RequestWithoutTools,
    /// A tool call changed something, so a wrong claim would be costly.
    SideEffect,
    /// The answer is very short. Only journals of older versions have it: most short answers are
    /// complete.
    ShortAnswer,
}
