//! The events of a turn, as the driver reports them and the journal records them.

use std::sync::Arc;

use rockbot_core::chat::{ChatErrorKind, ChatMessage, ChatResponse, MicroUsd, ModelTier, Overflow, Usage};
use rockbot_core::content::Content;
use rockbot_core::store::EndorsedValue;
use rockbot_core::tool::ToolInvokeResponse;
use rockbot_core::trust::Label;
use rockbot_core::turn::{
    Approval, Budget, BudgetLimit, DelegatedWork, LoopDecision, TurnFailure, TurnRequest, ValueOrigin,
};
use rockbot_core::{CallId, ToolName, TurnId};
use serde::{Deserialize, Serialize};

use super::call::CallFacts;
use super::compaction::OffloadedMessage;
use super::history::HistoryEdit;
use super::settings::PolicySnapshot;

/// Something that happened to a turn.
///
/// An event carries everything that a decision needs, since the machine itself performs no I/O.
/// The variants and their fields are the format of the journal: fields may be added with a
/// default, and none is renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum TurnEvent {
    /// The turn entered its session and begins to work.
    Started {
        /// The request as the turn layers changed it; `None` when they did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revised: Option<Box<Revision>>,
        /// The messages as the model will read them, the user's message included.
        context: Vec<ChatMessage>,
        /// `true` when the model has tools to call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_tools: bool,
        /// Size of the tool definitions in bytes.
        #[serde(default, skip_serializing_if = "is_default")]
        tool_bytes: usize,
        /// The untrusted sources of the texts that the model reads besides the messages:
        /// descriptions of tools. Older versions named the sources of the results of earlier turns
        /// here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        heard: Vec<String>,
        /// The entries that context sources returned for the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        recalled: Vec<Recalled>,
        /// The text at the end of each request whose model may call tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reminder: Option<String>,
        /// The content that input guardrails put in place of the user's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Content>,
        /// The groups of tools that are active in the conversation, or that shown entries need.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        active_tools: Vec<ToolName>,
        /// The values that the user has endorsed for the conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endorsed: Vec<EndorsedValue>,
    },
    /// An input guardrail did not let the user's message pass.
    InputRefused {
        /// The words for the user.
        text: String,
        /// The name of the guardrail.
        by: String,
        /// The error of a guardrail that failed; `None` when it refused the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The model answered.
    ModelAnswered {
        /// The answer.
        response: ChatResponse,
        /// The registry's facts about each tool call of the answer, in the order of the calls.
        facts: Vec<CallFacts>,
        /// The origins of the values of each call, in the order of the calls. Empty unless a call
        /// waits for a person because of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        origins: Vec<Vec<ValueOrigin>>,
    },
    /// The call to the model failed.
    ModelFailed {
        /// The kind of the failure.
        kind: ChatErrorKind,
        /// The error's message.
        message: String,
        /// The limits that the provider reported, when the request was too long for the context window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overflow: Option<Overflow>,
    },
    /// The call to the model was cut off by the event that follows. Its tokens are estimated.
    ModelCutOff {
        /// Tokens of the request, and of the part of the answer that had arrived.
        usage: Usage,
        /// Cost of these tokens; `None` if the price of the model is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<MicroUsd>,
    },
    /// The context sources were asked again within the turn.
    Gathered {
        /// The message with the entries for the model; `None` when no source had any.
        message: Option<ChatMessage>,
        /// All entries, with the reasons why they may help.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        recalled: Vec<Recalled>,
        /// The groups of tools that the entries need.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        active_tools: Vec<ToolName>,
    },
    /// The originals of a compaction are stored, and the conversation may be shortened.
    Compacted {
        /// The places of the originals; a result that could not be stored is missing.
        kept: Vec<OffloadedMessage>,
    },
    /// The loop policies of the host's program decided.
    Consulted {
        /// The messages that they added, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<Content>,
        /// The decision of the last policy that was asked.
        #[serde(default, skip_serializing_if = "is_default")]
        decision: LoopDecision,
        /// The name of the policy that decided something else than to continue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The policies that failed, each with its error.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<String>,
    },
    /// The output validators checked the final answer.
    Validated {
        /// The verdict of the last validator that was asked.
        #[serde(default, skip_serializing_if = "is_default")]
        verdict: Validation,
        /// The name of the validator that did not accept the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The history processors changed the conversation before a question to the model.
    HistoryEdited {
        /// The new conversation, in order.
        edits: Vec<HistoryEdit>,
    },
    /// Tools were registered since the turn began whose descriptions are text of others, and the
    /// model is shown them.
    ToolsTold {
        /// The label of the descriptions.
        label: Label,
    },
    /// The turn failed outside of the machine: in a store, a turn layer, or by a panic. Recorded
    /// before it is told, so that the message has this reply and no other, also after a restart.
    Failed {
        /// The reason.
        failure: TurnFailure,
        /// The reply.
        text: String,
    },
    /// A tool call is about to run.
    ToolStarted {
        /// The call.
        call: CallId,
    },
    /// The turn of another agent, which a tool call ran, has ended. The result of the call follows.
    Delegated(DelegatedWork),
    /// The turn, which a call of another turn runs, took more of the rest of the caller's budget.
    BudgetRaised {
        /// The budget from now on.
        budget: Budget,
    },
    /// A tool call ended.
    ToolReturned(ToolInvokeResponse),
    /// The call whose result follows activated groups of tools.
    Activated {
        /// The call of the host's own tool for that; `None` if another call activated them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<CallId>,
        /// The groups; none if the call failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<ToolName>,
    },
    /// A user approved or denied a call.
    ApprovalDecided(Approval),
    /// The approval expired: no user decided in time.
    ApprovalExpired,
    /// Another message of the session joined this turn.
    UserSaid {
        /// The id of the joining message's own turn.
        turn: TurnId,
        /// The content of the message.
        text: Content,
    },
    /// The turn continues with a more capable model, because its work is harder than its message
    /// looked.
    Escalated {
        /// The tier of that model.
        tier: ModelTier,
    },
    /// A limit was reached that only the driver can observe, such as wall-clock time.
    BudgetSpent(BudgetLimit),
    /// The turn was cancelled.
    Cancelled(CancelReason),
    /// The host shut down in good order: the next resume does not count as an interruption.
    Halted,
    /// The turn continues after its process ended.
    Resumed {
        /// The results of mutating calls that were running when the process ended.
        recovered: Vec<ToolInvokeResponse>,
        /// The groups of tools that these results need.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        active_tools: Vec<ToolName>,
        /// The work of other agents' turns in these calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delegated: Vec<DelegatedWork>,
    },
}

/// The verdict of output validators on the final answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Validation {
    /// All validators accepted the answer.
    #[default]
    Accepted,
    /// A validator complained, in these words for the model.
    Complained(String),
    /// A validator failed with this error, or the validators of the request were lost with their
    /// process.
    Failed(String),
    /// The host has no validators any more, and the request had none: nothing checked the answer.
    Unasked,
}

/// A request as the turn layers changed it before the turn began, and the settings that follow
/// from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub(crate) struct Revision {
    /// The changed request.
    pub(crate) request: Arc<TurnRequest>,
    /// The settings of the turn, in place of the settings at its acceptance.
    pub(crate) policy: PolicySnapshot,
}

/// An entry of a context source, and whether the model was shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Recalled {
    /// The name of the source.
    pub source: String,
    /// The first characters of the entry.
    pub beginning: String,
    /// The reason why the entry may help.
    pub reason: String,
    /// `true` when the entry fitted into the context budget.
    pub is_shown: bool,
}

/// The reason why a turn was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CancelReason {
    /// The caller cancelled the turn, or dropped it.
    Caller,
    /// A newer message of the session replaced it.
    Superseded,
}

/// Reports whether a field has its default value, so that the journal can leave it out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
