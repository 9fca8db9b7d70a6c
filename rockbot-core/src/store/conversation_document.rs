//! A conversation as a document, for another session, host or program.

use serde::{Deserialize, Serialize};

use super::ConversationTurn;
use crate::{SessionId, TurnId};

/// A conversation that was exported: a versioned JSON document.
///
/// Images and files stand in it as the conversation keeps them: as a URL, or as a reference to
/// the media store of the host. A host with another store shows the model a description in words
/// instead. A document may have their bytes, too; the import stores these.
///
/// ```
/// use rockbot_core::Timestamp;
/// use rockbot_core::chat::Role;
/// use rockbot_core::store::{ConversationDocument, ConversationTurn};
///
/// let entries = vec![ConversationTurn::new(Role::User, "hi", Timestamp::from_millis(5), "turn-1")];
/// let document = ConversationDocument::new("main", entries);
/// let json = serde_json::to_string(&document)?;
/// assert_eq!(
///     json,
///     r#"{"version":1,"session":"main","entries":[{"role":"user","content":"hi","timestamp":5,"turn":"turn-1"}]}"#
/// );
/// assert_eq!(serde_json::from_str::<ConversationDocument>(&json)?, document);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationDocument {
    /// Version of the format. New documents have [`ConversationDocument::VERSION`].
    pub version: u32,
    /// Session that was exported.
    pub session: SessionId,
    /// Entries, oldest first.
    pub entries: Vec<ConversationTurn>,
}

impl ConversationDocument {
    /// The version of the format that this library writes, and the newest that it reads.
    pub const VERSION: u32 = 1;

    /// Creates a document of `entries`.
    pub fn new(session: impl Into<SessionId>, entries: Vec<ConversationTurn>) -> Self {
        Self {
            version: Self::VERSION,
            session: session.into(),
            entries,
        }
    }

    /// Removes all entries after the entries of `turn`. Returns `false`, and changes nothing, if no
    /// entry is of that turn.
    pub fn truncate_at(&mut self, turn: &TurnId) -> bool {
        let last = self.entries.iter().rposition(|entry| entry.turn == *turn);
        if let Some(last) = last {
            self.entries.truncate(last + 1);
        }
        last.is_some()
    }
}
