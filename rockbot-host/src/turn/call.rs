//! A tool call within a turn, from the model's wish to its result.

use rockbot_core::chat::ToolCall;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::turn::{ApprovalRequest, FinishedCall};
use rockbot_core::{Digest, SessionId, TurnId, context::Grant};

use super::CallFacts;

/// A call and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct CallState {
    /// What the model asked for.
    pub call: ToolCall,
    /// What is known of it.
    pub facts: CallFacts,
    /// How far it is.
    pub status: CallStatus,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStatus {
    /// It has not run. `granted` once a person said yes.
    Waiting {
        /// Whether a person approved it.
        granted: bool,
    },
    /// It may have run: its started-record was written.
    Started {
        /// Whether a person approved it.
        granted: bool,
    },
    /// It ended.
    Finished(ToolInvokeResponse),
}

impl CallState {
    /// A call that has not run.
    pub fn new(call: ToolCall, facts: CallFacts) -> Self {
        Self {
            call,
            facts,
            status: CallStatus::Waiting { granted: false },
        }
    }

    /// Whether it ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.status, CallStatus::Finished(_))
    }

    /// Whether it may have run without having ended.
    pub fn is_started(&self) -> bool {
        matches!(self.status, CallStatus::Started { .. })
    }

    /// Whether it took too long.
    pub fn timed_out(&self) -> bool {
        let code = match &self.status {
            CallStatus::Finished(response) => response.code,
            _ => None,
        };
        matches!(code, Some(ToolErrorCode::Timeout | ToolErrorCode::OutcomeUnknown))
    }

    /// Whether a person must still decide about it.
    pub fn is_undecided(&self) -> bool {
        self.facts.needs_approval && self.status == CallStatus::Waiting { granted: false }
    }

    /// The permission that a person gave, if one did.
    pub fn grant(&self) -> Option<Grant> {
        let granted = matches!(
            self.status,
            CallStatus::Waiting { granted: true } | CallStatus::Started { granted: true }
        );
        granted.then(|| Grant {
            call: self.call.id.clone(),
            args_hash: self.args_hash(),
        })
    }

    /// The request to the tool.
    pub fn request(&self, session: &SessionId) -> ToolInvokeRequest {
        ToolInvokeRequest {
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
            session_id: session.clone(),
        }
    }

    /// The question to a person.
    pub fn ask(&self, turn: &TurnId) -> ApprovalRequest {
        ApprovalRequest {
            turn: turn.clone(),
            call: self.call.id.clone(),
            tool: self.call.name.clone(),
            arguments: self.call.arguments.to_string(),
            args_hash: self.args_hash(),
        }
    }

    /// Takes in that the process ended: a call that may run again waits once more.
    pub(super) fn interrupt(&mut self) {
        if let CallStatus::Started { granted } = self.status
            && self.facts.effect != Effect::Mutating
        {
            self.status = CallStatus::Waiting { granted };
        }
    }

    /// Ends a call that did not run; the model reads `message`.
    pub fn refuse(&mut self, code: ToolErrorCode, message: &str, session: &SessionId) {
        let response = self.request(session).fail(&ToolError::new(code, message));
        self.status = CallStatus::Finished(response);
    }

    /// The call as the outcome lists it, once it ended.
    pub fn finished(&self) -> Option<FinishedCall> {
        let CallStatus::Finished(response) = &self.status else {
            return None;
        };
        let is_error = response.is_error;
        Some(FinishedCall {
            call: self.call.id.clone(),
            tool: self.call.name.clone(),
            is_error,
        })
    }

    pub(super) fn args_hash(&self) -> Digest {
        Grant::args_hash(self.call.name.as_str(), &self.call.arguments)
    }
}
