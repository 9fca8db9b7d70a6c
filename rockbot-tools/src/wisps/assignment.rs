//! The message of a wisp's turn: its id and its definition.

use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, Role};
use rockbot_core::store::{PathError, StorePath};
use rockbot_core::trust::Label;
use serde::{Deserialize, Serialize};

use super::NAMESPACE;
use super::definition::Definition;

/// The beginning of a wisp's message, which tells it apart from the host's other messages.
const BEGIN: &str = r#"{"wisp":"#;

/// A wisp to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Assignment {
    #[serde(rename = "wisp")]
    pub(super) id: String,
    pub(super) definition: Definition,
}

impl Assignment {
    /// Returns the text of the message.
    pub(super) fn message(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Finds the assignment in a conversation. Returns it with its label and the messages behind it.
    pub(super) fn find(messages: &[Arc<ChatMessage>]) -> Option<(Self, Label, &[Arc<ChatMessage>])> {
        let at = messages
            .iter()
            .rposition(|message| message.role == Role::User && message.text().starts_with(BEGIN))?;
        let assignment = serde_json::from_str(&messages[at].text()).ok()?;
        Some((assignment, messages[at].label(), &messages[at + 1..]))
    }

    /// Returns a key in the wisp's part of working memory.
    pub(super) fn key(&self, rest: &str) -> Result<StorePath, PathError> {
        StorePath::new(&format!("{NAMESPACE}/{}/{rest}", self.id))
    }
}
