//! Why a message stands in what a model is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ChatMessage, Provenance, Role};

/// Why a message stands in what a model is shown. For people: no model and no rule reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextReason {
    /// What the agent is told to be.
    Instructions,
    /// What models of this kind are told besides.
    ModelBehavior,
    /// What the agent knows that may help with the message.
    Recalled,
    /// An earlier part of the conversation.
    History,
    /// The shape that the answer must have.
    Shape,
    /// How to work on the message.
    WorkingMethod,
    /// The time.
    DateTime,
    /// What the user said.
    Message,
    /// What the user said while the turn ran.
    Joined,
    /// What the model said in this turn.
    Answer,
    /// What a tool answered in this turn.
    ToolResult,
    /// What the host said to the model in this turn: a limit is reached, an answer is not complete.
    Correction,
    /// What was left out of the conversation, and where the model finds it.
    StashRegistry,
    /// What the model is reminded of with each request, its tasks included.
    Reminder,
}

impl fmt::Display for ContextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::ModelBehavior => "model behavior",
            Self::Recalled => "recalled",
            Self::History => "history",
            Self::Shape => "shape of the answer",
            Self::WorkingMethod => "working method",
            Self::DateTime => "date and time",
            Self::Message => "user's message",
            Self::Joined => "user's message while the turn ran",
            Self::Answer => "model's answer",
            Self::ToolResult => "tool result",
            Self::Correction => "correction by the host",
            Self::StashRegistry => "stash registry",
            Self::Reminder => "reminder",
        })
    }
}

impl ChatMessage {
    /// With the reason why it stands there.
    #[must_use]
    pub fn because(mut self, reason: ContextReason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Why it stands there: the reason that it was given, or else what its role and its source tell.
    pub fn why(&self) -> ContextReason {
        self.reason.unwrap_or_else(|| match self.role {
            Role::System => ContextReason::Instructions,
            Role::Assistant => ContextReason::Answer,
            Role::Tool => ContextReason::ToolResult,
            Role::User if self.is_of(&Provenance::USER) => ContextReason::Message,
            Role::User => ContextReason::Correction,
        })
    }

    fn is_of(&self, provenance: &Provenance) -> bool {
        self.content.iter().all(|part| part.provenance == *provenance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_nobody_gave_is_told_by_role_and_source() {
        let host = ChatMessage::text_of(Role::User, "stop".to_owned(), Provenance::HOST);
        let check = |message: ChatMessage, expected| assert_eq!(message.why(), expected);
        check(ChatMessage::system("be kind"), ContextReason::Instructions);
        check(ChatMessage::user("hi"), ContextReason::Message);
        check(ChatMessage::assistant("hi"), ContextReason::Answer);
        check(ChatMessage::tool("1".into(), "ok"), ContextReason::ToolResult);
        check(host.clone(), ContextReason::Correction);
        check(host.because(ContextReason::DateTime), ContextReason::DateTime);
    }

    #[test]
    fn a_message_without_a_reason_is_written_as_before() {
        let written = |message: &ChatMessage| serde_json::to_value(message).unwrap();
        let plain = ChatMessage::user("hi");
        assert_eq!(written(&plain).get("reason"), None);
        let past = plain.because(ContextReason::History);
        assert_eq!(written(&past)["reason"], "history");
        assert_eq!(serde_json::from_value::<ChatMessage>(written(&past)).unwrap(), past);
    }
}
