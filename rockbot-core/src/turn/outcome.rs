//! The outcome of a turn: its status, its reply and its cost.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, BudgetLimit};
use crate::chat::{ChatErrorKind, ModelTier, Spent, Usage};
use crate::content::{Content, ContentPart};
use crate::trust::Label;
use crate::{CallId, ToolName, TurnId};

/// The outcome of a turn, with the single final reply to its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnOutcome {
    /// Id of the turn.
    pub turn: TurnId,
    /// Status of the turn.
    pub status: TurnStatus,
    /// Reply to the user; never empty, whatever the status.
    pub text: String,
    /// Images and files of the answer, as references to the host's media store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<ContentPart>,
    /// Usage of all model calls of the turn together, as far as the provider reports it.
    pub usage: Usage,
    /// Number of model calls, including the model calls of agents that the turn called as tools.
    pub model_calls: u32,
    /// Tokens and cost of the answers, by tier.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<ModelTier, Spent>,
    /// Tool calls that ended, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FinishedCall>,
    /// Label of all that the model of the turn had read, and so of the reply. Default [`Label::UNKNOWN`], which is
    /// untrusted.
    #[serde(default, skip_serializing_if = "Label::is_unknown")]
    pub label: Label,
}

/// The status of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnStatus {
    /// The turn ended with an answer.
    Answered,
    /// The turn reached a limit and ended with its work so far.
    Partial(BudgetLimit),
    /// The turn has not ended: these calls wait for an approval.
    Parked(Vec<ApprovalRequest>),
    /// The message joined the turn that was running in its session; the answer is that turn's.
    Joined(TurnId),
    /// An input guardrail of the host's program refused the message, in words for the user; no model was asked.
    Refused,
    /// A newer message of the session replaced the turn.
    Superseded,
    /// The caller cancelled the turn.
    Cancelled,
    /// The turn failed.
    Failed(TurnFailure),
}

/// The reason why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnFailure {
    /// The call to the model failed.
    Model(ChatErrorKind),
    /// The model's answer was empty or truncated.
    NoAnswer,
    /// The model's answer does not match the requested output schema.
    Output,
    /// Tools timed out in two rounds in a row.
    ToolsTimedOut,
    /// The turn was interrupted by crashes or restarts too often.
    Interrupted,
    /// A newer version of the program wrote the turn's journal.
    UnknownVersion,
    /// The journal or the conversation cannot be read or written.
    Storage,
    /// A loop policy of the host's program ended the turn.
    Policy,
    /// An output validator of the host's program accepted none of the model's answers.
    Rejected {
        /// Complaint about the last answer.
        complaint: String,
    },
    /// A hook of the host's program that checks messages or answers failed, so the turn ended unchecked.
    Unchecked,
    /// The host failed internally, for example by a panic, while it worked on the turn.
    Internal,
}

/// A tool call that ended within a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FinishedCall {
    /// Id of the call.
    pub call: CallId,
    /// Name of the tool.
    pub tool: ToolName,
    /// `true` if the call failed, or its outcome is unknown.
    pub is_error: bool,
    /// `true` if the call may or may not have taken effect. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_outcome_unknown: bool,
}

impl FinishedCall {
    /// Creates a call that ended.
    pub fn new(call: impl Into<CallId>, tool: impl Into<ToolName>, is_error: bool) -> Self {
        Self {
            call: call.into(),
            tool: tool.into(),
            is_error,
            is_outcome_unknown: false,
        }
    }

    /// Sets whether the call may or may not have taken effect. Default `false`.
    #[must_use]
    pub fn with_outcome_unknown(mut self, is_unknown: bool) -> Self {
        self.is_outcome_unknown = is_unknown;
        self
    }
}

impl TurnOutcome {
    /// Creates the outcome of a turn that made no call and cost nothing.
    pub fn new(turn: TurnId, status: TurnStatus, text: impl Into<String>) -> Self {
        Self {
            turn,
            status,
            text: text.into(),
            media: Vec::new(),
            usage: Usage::default(),
            model_calls: 0,
            tiers: BTreeMap::new(),
            calls: Vec::new(),
            label: Label::UNKNOWN,
        }
    }

    /// Returns the reply with its images and files.
    pub fn content(&self) -> Content {
        let mut content = Content::from(&self.text);
        content.extend(self.media.iter().cloned());
        content
    }

    /// Returns the tokens and cost of all answers of the turn together.
    pub fn spent(&self) -> Spent {
        self.tiers.values().copied().sum()
    }

    /// Returns `true` if the turn ended with an answer, a partial one and a refusal in words included.
    pub fn is_answer(&self) -> bool {
        matches!(
            self.status,
            TurnStatus::Answered | TurnStatus::Partial(_) | TurnStatus::Joined(_) | TurnStatus::Refused
        )
    }

    /// Returns `true` if the turn has ended, that is, unless it waits for an approval.
    pub fn is_final(&self) -> bool {
        !matches!(self.status, TurnStatus::Parked(_))
    }
}

impl fmt::Display for TurnOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
