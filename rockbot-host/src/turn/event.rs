//! What happens to a turn and what the turn wants done: the vocabulary of the machine and of the journal.

use std::time::Duration;

use rockbot_core::chat::{ChatErrorKind, ChatMessage, ChatResponse, ModelTier, Overflow};
use rockbot_core::tool::{Effect, ToolInvokeResponse};
use rockbot_core::turn::{Approval, ApprovalRequest, Budget, BudgetLimit, TurnStatus};
use rockbot_core::{CallId, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::economy::{ContextEconomy, OffloadedMessage};
use super::policy::{Compaction, Evaluation, Nudge, Nudges, Trigger};

/// Something that happened to a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEvent {
    /// Its session is free; this is the context for the model, the message itself included.
    Started {
        /// The messages as the model will see them.
        context: Vec<ChatMessage>,
        /// Whether the model has tools to call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_tools: bool,
        /// How many bytes the definitions of the tools have.
        #[serde(default, skip_serializing_if = "is_default")]
        tool_bytes: usize,
        /// What the agent knew that may help.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        recalled: Vec<Recalled>,
        /// What stands at the end of each request in which the model may call tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reminder: Option<String>,
    },
    /// The model answered.
    ModelAnswered {
        /// Its answer.
        response: ChatResponse,
        /// What is known of each tool call of the answer, in the same order.
        facts: Vec<CallFacts>,
    },
    /// The model could not be asked.
    ModelFailed {
        /// Why.
        kind: ChatErrorKind,
        /// The error's own words.
        message: String,
        /// What the provider told about the model's window, when the request was too long for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overflow: Option<Overflow>,
    },
    /// What the agent knows about something is known.
    Gathered {
        /// It, if there is anything.
        message: Option<ChatMessage>,
        /// All of it, and why it may help.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        recalled: Vec<Recalled>,
    },
    /// What was to be left out of the conversation is left out.
    Compacted {
        /// Where the originals of results are.
        kept: Vec<OffloadedMessage>,
    },
    /// A tool call is about to run.
    ToolStarted {
        /// The call.
        call: CallId,
    },
    /// A tool call ended.
    ToolReturned(ToolInvokeResponse),
    /// A person decided about a call.
    ApprovalDecided(Approval),
    /// Nobody decided in time.
    ApprovalExpired,
    /// Another message of the session joined this turn.
    UserSaid {
        /// The joining message's own turn.
        turn: TurnId,
        /// What it says.
        text: String,
    },
    /// The turn is harder than its message looked: it goes on with a more capable model.
    Escalated {
        /// The tier of that model.
        tier: ModelTier,
    },
    /// A limit was reached that the turn cannot see by itself.
    BudgetSpent(BudgetLimit),
    /// The turn is no longer wanted.
    Cancelled(CancelReason),
    /// The host stopped in good order: the next resume does not count as an interruption.
    Halted,
    /// The turn goes on after its process ended.
    Resumed {
        /// What became of mutating calls that were running when it ended.
        recovered: Vec<ToolInvokeResponse>,
    },
}

/// Something that a source knew, and whether the model was shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recalled {
    /// Who knew it.
    pub source: String,
    /// What it begins with.
    pub beginning: String,
    /// Why it may help.
    pub reason: String,
    /// Whether there was room for it.
    pub is_shown: bool,
}

/// Why a turn is no longer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The caller went away.
    Caller,
    /// A newer message took its place.
    Superseded,
}

/// What the registry knew of a call when the model asked for it. Kept, so that a resume decides as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFacts {
    /// What the call changes.
    pub effect: Effect,
    /// Whether a person must approve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Whether the result stays in the conversation as it is, however long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_result_whole: bool,
}

/// Something that the turn wants done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnStep {
    /// Ask the model.
    AskModel(Purpose),
    /// Look for what the agent knows about this.
    Gather(String),
    /// Leave something out of the conversation.
    Compact(Compaction),
    /// Run these calls, all at once.
    CallTools(Vec<CallId>),
    /// Wait for a person.
    AwaitApproval {
        /// The calls to decide about.
        asks: Vec<ApprovalRequest>,
        /// Until when.
        until: Timestamp,
    },
    /// Tell whoever listens.
    Emit(String),
    /// Count something about the turn.
    Count(TurnCounter),
    /// End the turn.
    Finish {
        /// How.
        status: TurnStatus,
        /// The final reply; `None` when it is the model's last answer as it stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnCounter {
    /// An answer was judged complete.
    CompletionComplete,
    /// An answer was judged incomplete, and is sent back.
    CompletionIncomplete,
    /// An answer was not judged: the turn was ended.
    CompletionSkipped,
    /// More is worth doing.
    FollowUpTriggered,
    /// Nothing more is worth doing.
    FollowUpNone,
    /// Nobody looked whether more is worth doing.
    FollowUpSkipped,
    /// Something was left out of the conversation.
    ContextCompacted,
}

impl TurnCounter {
    /// Its name as a metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompletionComplete => "rockbot.agent.completion_check.complete",
            Self::CompletionIncomplete => "rockbot.agent.completion_check.incomplete",
            Self::CompletionSkipped => "rockbot.agent.completion_check.skipped",
            Self::FollowUpTriggered => "rockbot.agent.follow_up.triggered",
            Self::FollowUpNone => "rockbot.agent.follow_up.none",
            Self::FollowUpSkipped => "rockbot.agent.follow_up.skipped",
            Self::ContextCompacted => "rockbot.agent.context.compacted",
        }
    }
}

/// What the model is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// The next step towards the answer, with tools.
    Answer,
    /// A last answer from what is there, without tools: a limit was reached.
    Conclude(BudgetLimit),
    /// The answer once more, without tools, in the shape that was asked for.
    Shape {
        /// What was wrong with the shape of the last answer.
        problem: String,
    },
    /// The next step once more, with tools: the last answer was not one yet.
    Retry(Nudge),
    /// A cheap model's verdict on the last answer, aside from the conversation.
    Evaluate(Trigger),
    /// The next step, with tools: the last answer was judged incomplete.
    Continue {
        /// What is missing.
        reason: String,
    },
    /// A cheap model's opinion whether more is worth doing, aside from the conversation.
    AssessFollowUp,
    /// Something more, with tools, after a complete answer.
    FollowUp {
        /// What.
        prompt: String,
    },
}

impl Purpose {
    /// Whether the model may call tools.
    pub fn has_tools(&self) -> bool {
        matches!(
            self,
            Self::Answer | Self::Retry(_) | Self::Continue { .. } | Self::FollowUp { .. }
        )
    }

    /// Whether it is a question aside, which the conversation does not show.
    pub fn is_out_of_band(&self) -> bool {
        matches!(self, Self::Evaluate(_) | Self::AssessFollowUp)
    }
}

/// The settings of a turn, as they were when it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySnapshot {
    /// What it may spend.
    pub budget: Budget,
    /// How often it may be resumed after its process ended before it gives up. Default 3.
    pub max_resumes: u32,
    /// How long it waits for a person. Default 7 days.
    pub approval_expiry: Duration,
    /// How often a model may try to give its answer the right shape. Default 2.
    pub max_shape_attempts: u32,
    /// The tier that was selected for a message that names none; `None` when nobody selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ModelTier>,
    /// How many characters a tool's result may have to stay in the conversation; `None` is as the host says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_threshold: Option<usize>,
    /// Which weaknesses of its model are answered with a nudge.
    #[serde(skip_serializing_if = "is_default")]
    pub nudges: Nudges,
    /// How often it may look at its own answer again.
    #[serde(skip_serializing_if = "is_default")]
    pub evaluation: Evaluation,
    /// When something is left out of the conversation.
    #[serde(skip_serializing_if = "is_default")]
    pub economy: ContextEconomy,
    /// Whether its model keeps a list of tasks. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub task_list: bool,
}

/// Whether a journal need not say it.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for PolicySnapshot {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            max_resumes: 3,
            approval_expiry: Duration::from_secs(7 * 24 * 60 * 60),
            max_shape_attempts: 2,
            tier: None,
            result_threshold: None,
            nudges: Nudges::default(),
            evaluation: Evaluation::default(),
            economy: ContextEconomy::default(),
            task_list: false,
        }
    }
}
