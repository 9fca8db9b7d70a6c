//! Asking a person before a tool call runs.

use serde::{Deserialize, Serialize};

use crate::{CallId, Digest, ToolName, TurnId};

/// A tool call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The turn that waits.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The exact arguments that would be approved, as JSON text.
    pub arguments: String,
    /// Binds the decision to the tool and these arguments.
    pub args_hash: Digest,
}

/// What a person decided about a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The turn that waits.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// The hash from the request: a decision about other arguments does not count.
    pub args_hash: Digest,
    /// Whether the call may run.
    pub approved: bool,
    /// Why not, for the model to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ApprovalRequest {
    /// Yes to exactly this call.
    pub fn approve(&self) -> Approval {
        self.decide(true, None)
    }

    /// No; the model reads `reason`.
    pub fn deny(&self, reason: impl Into<String>) -> Approval {
        self.decide(false, Some(reason.into()))
    }

    fn decide(&self, approved: bool, reason: Option<String>) -> Approval {
        Approval {
            turn: self.turn.clone(),
            call: self.call.clone(),
            args_hash: self.args_hash,
            approved,
            reason,
        }
    }
}
