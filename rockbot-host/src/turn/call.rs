//! A tool call within a turn, from the model's request to its result.

use rockbot_core::chat::ToolCall;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::turn::{ApprovalRequest, FinishedCall, ValueOrigin};
use rockbot_core::{Digest, SessionId, TurnId, context::Grant};
use serde::{Deserialize, Serialize};

/// The registry's facts about a call at the time when the model requested it.
///
/// They are recorded with the model's answer, so a resume decides on the same facts even when the
/// tool has changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallFacts {
    /// The effect of the call on the world.
    pub(crate) effect: Effect,
    /// `true` when a user must approve the call. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) needs_approval: bool,
    /// `true` when the result stays in the conversation unchanged, whatever its length. Default
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_result_whole: bool,
    /// `true` when the call hands work to another agent, which reports the result later. Default
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) delegates: bool,
    /// `true` when the call runs a turn of another agent, which spends of this turn's budget. Default
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) runs_turn: bool,
    /// `true` when the result is the tool's own words, but for the parts that state another origin.
    /// Default `false`: outside text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own_output: bool,
}

/// A call and its progress.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallState {
    /// The call as the model requested it, with an id that is unique within the turn.
    pub(crate) call: ToolCall,
    /// The facts for decisions about the call.
    pub(crate) facts: CallFacts,
    /// The progress of the call.
    pub(crate) status: CallStatus,
    /// The origins of the values that decide about the call, for the question to a user.
    pub(crate) origins: Vec<ValueOrigin>,
    /// `true` once a user approved the call with other arguments than the model's.
    pub(crate) is_changed: bool,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallStatus {
    /// The call has not run.
    Waiting {
        /// `true` once a user approved the call.
        granted: bool,
    },
    /// The call may have run: the record of its start is in the journal.
    Started {
        /// `true` when a user approved the call.
        granted: bool,
    },
    /// The call ended.
    Finished(ToolInvokeResponse),
}

impl CallState {
    /// Creates the state of a call that has not run.
    pub(crate) fn new(call: ToolCall, facts: CallFacts) -> Self {
        Self {
            call,
            facts,
            status: CallStatus::Waiting { granted: false },
            origins: Vec::new(),
            is_changed: false,
        }
    }

    /// Sets the origins of the values that decide about the call.
    pub(crate) fn with_origins(mut self, origins: Vec<ValueOrigin>) -> Self {
        self.origins = origins;
        self
    }

    /// Returns `true` if the call ended.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.status, CallStatus::Finished(_))
    }

    /// Returns `true` if the call may have run and has not ended.
    pub(crate) fn is_started(&self) -> bool {
        matches!(self.status, CallStatus::Started { .. })
    }

    /// Returns `true` if the call ended because its time limit passed.
    pub(crate) fn timed_out(&self) -> bool {
        matches!(&self.status, CallStatus::Finished(response) if response.timed_out())
    }

    /// Returns `true` if a user must still decide about the call.
    pub(crate) fn is_undecided(&self) -> bool {
        self.facts.needs_approval && self.status == CallStatus::Waiting { granted: false }
    }

    /// Returns the permission that a user gave; `None` when no user did.
    pub(crate) fn grant(&self) -> Option<Grant> {
        let granted = matches!(
            self.status,
            CallStatus::Waiting { granted: true } | CallStatus::Started { granted: true }
        );
        granted.then(|| Grant::new(self.call.id.clone(), self.args_hash()))
    }

    /// Returns the request to the tool.
    pub(crate) fn request(&self, session: &SessionId) -> ToolInvokeRequest {
        ToolInvokeRequest::new(
            self.call.id.clone(),
            self.call.name.clone(),
            self.call.arguments.clone(),
        )
        .with_session_id(session.clone())
    }

    /// Returns the request for a user's approval.
    pub(crate) fn ask(&self, turn: &TurnId) -> ApprovalRequest {
        let Self { call, origins, .. } = self;
        ApprovalRequest::new(turn.clone(), call.id.clone(), call.name.clone(), &*call.arguments)
            .with_origins(origins.clone())
    }

    /// Puts a user's arguments in place of the model's.
    pub(crate) fn change(&mut self, arguments: &str) {
        self.call.arguments = arguments.into();
        self.is_changed = true;
    }

    /// Applies the end of the process: a call that may run again waits again.
    ///
    /// A mutating call stays started, since running it twice could do harm.
    pub(super) fn interrupt(&mut self) {
        if let CallStatus::Started { granted } = self.status
            && self.facts.effect != Effect::Mutating
        {
            self.status = CallStatus::Waiting { granted };
        }
    }

    /// Ends a call that did not run; the model reads `message`, the host's own words, as its result.
    pub(crate) fn refuse(&mut self, code: ToolErrorCode, message: &str, session: &SessionId) {
        let response = self.request(session).fail(&ToolError::new(code, message));
        self.status = CallStatus::Finished(response);
        self.facts.own_output = true;
    }

    /// Returns the call as the outcome lists it; `None` until it ended.
    pub(crate) fn finished(&self) -> Option<FinishedCall> {
        let CallStatus::Finished(response) = &self.status else {
            return None;
        };
        let call = &self.call;
        let is_unknown = response.code == Some(ToolErrorCode::OutcomeUnknown);
        let finished = FinishedCall::new(call.id.clone(), call.name.clone(), response.is_error);
        Some(finished.with_outcome_unknown(is_unknown))
    }

    pub(crate) fn args_hash(&self) -> Digest {
        Grant::args_hash(self.call.name.as_str(), &self.call.arguments)
    }
}
