//! The outcome of a turn: its status, its reply and its cost.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, BudgetLimit, OutsideStatement};
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
    /// Label of all that the model of the turn had read, and so of the reply. Default
    /// [`Label::UNKNOWN`], which is untrusted.
    #[serde(default, skip_serializing_if = "Label::is_unknown")]
    pub label: Label,
    /// Statements of the reply that rest on text of others alone, in order. Empty unless the request
    /// [asks for them](super::TurnRequest::marks_statements) or the reply is announced. A statement in
    /// other words than its source's is not found: the label counts for the whole reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside_statements: Vec<OutsideStatement>,
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
    /// An input guardrail of the host's program refused the message, in words for the user; no model
    /// was asked.
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
    /// A hook of the host's program that checks messages or answers failed, so the turn ended
    /// unchecked.
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
            outside_statements: Vec::new(),
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

    /// Returns `true` if the turn ended with an answer that announces a further step, such as `Now
    /// let me save the rest.`: models that run out of steps end so, in the middle of their work.
    ///
    /// ```
    /// use rockbot_core::turn::{TurnOutcome, TurnStatus};
    ///
    /// let ended = |text| TurnOutcome::new("turn-1".into(), TurnStatus::Answered, text);
    /// assert!(ended("Three so far. Now let me look for the others.").is_unfinished());
    /// assert!(!ended("Three of them are here.").is_unfinished());
    /// ```
    pub fn is_unfinished(&self) -> bool {
        const BEGINNINGS: [&str; 5] = ["now let me", "let me now", "next, i", "i will now", "i'll now"];
        let text = self.text.trim().to_lowercase();
        let is_open = [":", "...", "…"].iter().any(|end| text.ends_with(end));
        let sentences = text.split_inclusive(['.', '!', '?', '\n', '…']);
        let says = |sentence: &&str| sentence.chars().any(char::is_alphanumeric);
        let last = sentences.rev().find(says);
        let begins = |sentence: &str| BEGINNINGS.iter().any(|words| sentence.trim_start().starts_with(words));
        self.status == TurnStatus::Answered && (is_open || last.is_some_and(begins))
    }

    /// Returns the turn's tool calls in words, by tool, with those that failed or whose outcome is
    /// unknown: for a reader who must not take for done what failed. Empty if there were none; at
    /// most 16 tools are named.
    ///
    /// ```
    /// use rockbot_core::turn::{FinishedCall, TurnOutcome, TurnStatus};
    ///
    /// let mut outcome = TurnOutcome::new("turn-1".into(), TurnStatus::Answered, "Done.");
    /// outcome.calls = vec![
    ///     FinishedCall::new("1", "look", false),
    ///     FinishedCall::new("2", "pay", true),
    ///     FinishedCall::new("3", "look", false),
    /// ];
    /// assert_eq!(outcome.call_ledger(), "`look` 2, `pay` 1 (1 failed)");
    /// ```
    pub fn call_ledger(&self) -> String {
        const MAX_TOOLS: usize = 16;
        let mut tools: BTreeMap<&ToolName, [usize; 3]> = BTreeMap::new();
        for call in &self.calls {
            let [all, failed, unknown] = tools.entry(&call.tool).or_default();
            *all += 1;
            *unknown += usize::from(call.is_outcome_unknown);
            *failed += usize::from(call.is_error && !call.is_outcome_unknown);
        }
        let more = tools.len().saturating_sub(MAX_TOOLS);
        let entry = |(tool, [all, failed, unknown]): (&ToolName, [usize; 3])| match (failed, unknown) {
            (0, 0) => format!("`{tool}` {all}"),
            (failed, 0) => format!("`{tool}` {all} ({failed} failed)"),
            (0, unknown) => format!("`{tool}` {all} ({unknown} with an unknown outcome)"),
            (failed, unknown) => format!("`{tool}` {all} ({failed} failed, {unknown} with an unknown outcome)"),
        };
        let mut entries: Vec<_> = tools.into_iter().take(MAX_TOOLS).map(entry).collect();
        if more > 0 {
            entries.push(format!("{more} more tools"));
        }
        entries.join(", ")
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
