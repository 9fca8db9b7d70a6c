//! Approvals: the request to a person before a tool call runs, and the decision.

use serde::{Deserialize, Serialize};

use super::ValueOrigin;
use crate::context::Grant;
use crate::tool::{ToolError, ToolErrorCode};
use crate::{CallId, Digest, ToolName, TurnId};

/// A tool call that waits for the approval of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Turn that waits for the decision.
    pub turn: TurnId,
    /// Id of the tool call.
    pub call: CallId,
    /// Name of the tool.
    pub tool: ToolName,
    /// Exact arguments that would be approved, as JSON text.
    pub arguments: String,
    /// Digest that binds the decision to the tool and to these arguments.
    pub args_hash: Digest,
    /// Agents that were called on the way to the turn, from the user's turn down; empty if the user's
    /// turn makes the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_by: Vec<ToolName>,
    /// Origins of the values that decide about the call, the doubtful values first. Empty unless the
    /// model had read untrusted text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<ValueOrigin>,
}

/// The decision of a person about a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Approval {
    /// Turn that waits for the decision.
    pub turn: TurnId,
    /// Id of the tool call.
    pub call: CallId,
    /// Digest from the request: a decision about other arguments is rejected.
    pub args_hash: Digest,
    /// `true` if the call may run.
    pub approved: bool,
    /// Reason of a denial, which the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Arguments that the call runs with instead of the model's, as JSON text. Default `None`: the
    /// arguments that were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// `true` if the doubtful values of the call are the user's own in this conversation from now on,
    /// so that the tool is called with them without a question. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_conversation: bool,
    /// User who decides, for a decision over a bus whose envelope names no principal. `None` means
    /// the local user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

impl Approval {
    /// Sets the user who decides. A host accepts a decision of the turn's own principal, and of the
    /// approvers that it was told.
    #[must_use]
    pub fn by_user(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = Some(user_id.into());
        self
    }
}

impl ApprovalRequest {
    /// Creates the request for a decision about a call of `tool` with exactly these arguments.
    pub fn new(
        turn: impl Into<TurnId>,
        call: impl Into<CallId>,
        tool: impl Into<ToolName>,
        arguments: impl Into<String>,
    ) -> Self {
        let tool = tool.into();
        let arguments = arguments.into();
        Self {
            turn: turn.into(),
            call: call.into(),
            args_hash: Grant::args_hash(tool.as_str(), &arguments),
            tool,
            arguments,
            asked_by: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Sets the origins of the values that decide about the call. Default: none.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<ValueOrigin>) -> Self {
        self.origins = origins;
        self
    }

    /// Returns the approval of exactly this call with these arguments.
    pub fn approve(&self) -> Approval {
        self.decide(true, None)
    }

    /// Returns the approval of the call, and of later calls of the tool with the same doubtful
    /// [`origins`](Self::origins) in this conversation: "yes for this recipient".
    pub fn approve_for_conversation(&self) -> Approval {
        Approval {
            for_conversation: true,
            ..self.approve()
        }
    }

    /// Returns the approval of the call with other arguments, an object as JSON text. The model is
    /// told of the change. The host refuses a decision whose arguments do not fit the tool.
    pub fn approve_with(&self, arguments: impl Into<String>) -> Approval {
        Approval {
            arguments: Some(arguments.into()),
            ..self.approve()
        }
    }

    /// Returns the denial of the call. The model reads `reason`.
    pub fn deny(&self, reason: impl Into<String>) -> Approval {
        self.decide(false, Some(reason.into()))
    }

    /// Creates the error of a call that ran a turn which needs these approvals, where no person can
    /// be asked.
    pub fn unasked(requests: &[Self]) -> ToolError {
        let tools: Vec<_> = requests.iter().map(|request| format!("`{}`", request.tool)).collect();
        let message = format!(
            "stopped: a person must approve {}, which is not possible within this call. Ask for less, or do that step with \
             a tool of your own.",
            tools.join(", ")
        );
        ToolError::new(ToolErrorCode::ApprovalRequired, message)
    }

    fn decide(&self, approved: bool, reason: Option<String>) -> Approval {
        Approval {
            turn: self.turn.clone(),
            call: self.call.clone(),
            args_hash: self.args_hash,
            approved,
            reason,
            arguments: None,
            for_conversation: false,
            user_id: None,
        }
    }
}
