//! An entry of a conversation, with the tool calls that led to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::EndorsedValue;
use crate::chat::Role;
use crate::content::Content;
use crate::trust::Label;
use crate::{Timestamp, ToolName, TurnId};

/// An entry of a conversation.
///
/// An entry without calls is written as it always was: its calls are an additional member.
///
/// ```
/// use rockbot_core::Timestamp;
/// use rockbot_core::chat::Role;
/// use rockbot_core::store::{CallRound, ConversationTurn, PastCall};
///
/// let call = PastCall::new("calendar", r#"{"day":"Friday"}"#, "Lunch with Ann at noon.");
/// let answer = ConversationTurn::new(Role::Assistant, "You meet Ann.", Timestamp::default(), "turn-1")
///     .with_rounds(vec![CallRound::new(vec![call])]);
/// let json = serde_json::to_value(&answer)?;
/// assert_eq!(json["rounds"][0]["calls"][0]["result"], "Lunch with Ann at noon.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationTurn {
    /// Role of the speaker; [`Role::System`] is the host, about a request that was not answered.
    pub role: Role,
    /// Content of the entry.
    pub content: Content,
    /// Time of the entry.
    pub timestamp: Timestamp,
    /// Turn of the engine that the entry belongs to; the key of deduplication.
    pub turn: TurnId,
    /// Tool calls that the turn made before this entry, in order. Empty by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<CallRound>,
    /// [Groups of tools](crate::tool::ToolGroup) that were active in the conversation at the end of
    /// the turn, in the order of their activation; at the turn's last entry. Empty by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active_tools: Vec<ToolName>,
    /// Values that the user has endorsed for the conversation; at the turn's last entry. Empty by
    /// default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endorsed: Vec<EndorsedValue>,
    /// Label of the entry's sources. The sources of an answer are all that its model had read.
    /// `None` for entries without a label, as older versions wrote them: an answer is then
    /// untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}

/// Tool calls that a model made at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallRound {
    /// Calls, in the model's order.
    pub calls: Vec<PastCall>,
    /// `true` if the calls were read from the model's text. Default `false`: native calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_text: bool,
}

/// A tool call of an earlier turn, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PastCall {
    /// Name of the tool.
    pub name: ToolName,
    /// Arguments: JSON text, as the model wrote it.
    pub arguments: Arc<str>,
    /// Result. Parts without an origin are the tool's, and untrusted.
    pub result: Content,
}

impl ConversationTurn {
    /// Creates an entry without calls.
    pub fn new(role: Role, content: impl Into<Content>, timestamp: Timestamp, turn: impl Into<TurnId>) -> Self {
        Self {
            role,
            content: content.into(),
            timestamp,
            turn: turn.into(),
            rounds: Vec::new(),
            active_tools: Vec::new(),
            endorsed: Vec::new(),
            label: None,
        }
    }

    /// Sets the tool calls that the turn made before this entry.
    #[must_use]
    pub fn with_rounds(mut self, rounds: Vec<CallRound>) -> Self {
        self.rounds = rounds;
        self
    }

    /// Sets the groups of tools that were active at the end of the turn.
    #[must_use]
    pub fn with_active_tools(mut self, groups: Vec<ToolName>) -> Self {
        self.active_tools = groups;
        self
    }

    /// Sets the values that the user has endorsed for the conversation.
    #[must_use]
    pub fn with_endorsed(mut self, endorsed: Vec<EndorsedValue>) -> Self {
        self.endorsed = endorsed;
        self
    }

    /// Sets the label of the entry's sources. Default `None`: it is not recorded.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<Option<Label>>) -> Self {
        self.label = label.into();
        self
    }

    /// Returns the length of all texts of the entry together, including the texts of its calls, in
    /// bytes.
    pub fn text_len(&self) -> usize {
        let calls = self.rounds.iter().flat_map(|round| &round.calls);
        self.content.text_len() + calls.map(PastCall::text_len).sum::<usize>()
    }
}

impl CallRound {
    /// Creates a round of native `calls`.
    pub fn new(calls: Vec<PastCall>) -> Self {
        Self {
            calls,
            from_text: false,
        }
    }

    /// Sets whether the calls were read from the model's text. Default `false`.
    #[must_use]
    pub fn with_from_text(mut self, from_text: bool) -> Self {
        self.from_text = from_text;
        self
    }
}

impl PastCall {
    /// Creates a call with its result.
    pub fn new(name: impl Into<ToolName>, arguments: impl Into<Arc<str>>, result: impl Into<Content>) -> Self {
        Self {
            name: name.into(),
            arguments: arguments.into(),
            result: result.into(),
        }
    }

    /// Returns the length of the name, the arguments and the texts of the result together, in bytes.
    pub fn text_len(&self) -> usize {
        self.name.as_str().len() + self.arguments.len() + self.result.text_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_entry_is_written_as_before() {
        let plain = ConversationTurn::new(Role::User, "hi", Timestamp::from_millis(5), "t");
        let json = serde_json::to_string(&plain).unwrap();
        assert_eq!(json, r#"{"role":"user","content":"hi","timestamp":5,"turn":"t"}"#);
        assert_eq!(serde_json::from_str::<ConversationTurn>(&json).unwrap(), plain);
    }
}
