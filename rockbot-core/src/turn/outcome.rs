//! How a turn ends.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, BudgetLimit};
use crate::chat::{ChatErrorKind, ModelTier, Spent, Usage};
use crate::{CallId, ToolName, TurnId};

/// The end of a turn, and the one final reply to its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnOutcome {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub status: TurnStatus,
    /// The reply: never empty, whatever the status.
    pub text: String,
    /// What all model calls of the turn cost together, as far as the provider says.
    pub usage: Usage,
    /// How many times the model was asked.
    pub model_calls: u32,
    /// What the answers of each tier that was asked cost, in tokens and money.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<ModelTier, Spent>,
    /// The tool calls that ended, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FinishedCall>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnStatus {
    /// With an answer.
    Answered,
    /// With what there was when a limit was reached.
    Partial(BudgetLimit),
    /// It has not ended: these calls wait for a person.
    Parked(Vec<ApprovalRequest>),
    /// It joined the turn that was running in its session, whose answer this is.
    Joined(TurnId),
    /// A newer message took its place.
    Superseded,
    /// Nobody wanted the answer any more.
    Cancelled,
    /// Something went wrong.
    Failed(TurnFailure),
}

/// Why a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnFailure {
    /// The model could not be asked.
    Model(ChatErrorKind),
    /// The model's answer was empty or cut.
    NoAnswer,
    /// The model's answer does not have the shape that was asked for.
    Output,
    /// Tools took too long, two rounds in a row.
    ToolsTimedOut,
    /// The turn was interrupted too often.
    Interrupted,
    /// Its journal was written by a newer version.
    UnknownVersion,
    /// Its journal or its conversation could not be read or written.
    Storage,
    /// The host broke down while it worked on it.
    Internal,
}

/// A tool call that ended within a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishedCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Whether it failed.
    pub is_error: bool,
}

impl TurnOutcome {
    /// The end of a turn that did nothing and cost nothing.
    pub fn new(turn: TurnId, status: TurnStatus, text: impl Into<String>) -> Self {
        Self {
            turn,
            status,
            text: text.into(),
            usage: Usage::default(),
            model_calls: 0,
            tiers: BTreeMap::new(),
            calls: Vec::new(),
        }
    }

    /// What all answers of the turn cost together, in tokens and money.
    pub fn spent(&self) -> Spent {
        self.tiers.values().copied().sum()
    }

    /// Whether the turn ended with an answer, if only a partial one.
    pub fn is_answer(&self) -> bool {
        matches!(
            self.status,
            TurnStatus::Answered | TurnStatus::Partial(_) | TurnStatus::Joined(_)
        )
    }

    /// Whether the turn has ended at all.
    pub fn is_final(&self) -> bool {
        !matches!(self.status, TurnStatus::Parked(_))
    }
}

impl fmt::Display for TurnOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
