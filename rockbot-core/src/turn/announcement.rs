//! Announcements: messages of an agent that no caller asked for.

use serde::{Deserialize, Serialize};

use super::ApprovalRequest;
use crate::content::Content;
use crate::trust::Label;
use crate::{Principal, SessionId, Timestamp, TurnId};

/// A message of an agent that no caller asked for: the result of work in the background, a
/// reminder, a request for an approval in a turn that no caller waits for.
///
/// The host keeps announcements, also over a restart, until a program takes them.
///
/// ```
/// use rockbot_core::turn::Announcement;
///
/// let announcement = Announcement::new("ann", "kitchen", "The tea is ready.");
/// assert_eq!(announcement.content, "The tea is ready.");
/// assert_eq!(announcement.approval, None);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Announcement {
    /// Principal that the message is for.
    pub principal: Principal,
    /// Session that the message belongs to.
    pub session: SessionId,
    /// Content of the message.
    #[serde(rename = "text")]
    pub content: Content,
    /// Turn whose answer or request the message is; `None` for a message of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Turns in the background whose results the message tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TurnId>,
    /// Request that waits for a decision, if the message asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRequest>,
    /// Time of the message, set by the host that keeps it.
    #[serde(default)]
    pub at: Timestamp,
    /// Label of all that the message was made of. Default [`Label::UNKNOWN`], which is untrusted.
    #[serde(default, skip_serializing_if = "Label::is_unknown")]
    pub label: Label,
}

impl Announcement {
    /// Creates a message of the program.
    pub fn new(principal: impl Into<Principal>, session: impl Into<SessionId>, content: impl Into<Content>) -> Self {
        Self {
            principal: principal.into(),
            session: session.into(),
            content: content.into(),
            turn: None,
            results: Vec::new(),
            approval: None,
            at: Timestamp::default(),
            label: Label::HOST,
        }
    }

    /// Sets the turn whose answer or request the message is. Default none.
    #[must_use]
    pub fn with_turn(mut self, turn: impl Into<TurnId>) -> Self {
        self.turn = Some(turn.into());
        self
    }

    /// Sets the turns in the background whose results the message tells. Default none.
    #[must_use]
    pub fn with_results(mut self, results: Vec<TurnId>) -> Self {
        self.results = results;
        self
    }

    /// Sets the request that waits for a decision. Default none.
    #[must_use]
    pub fn with_approval(mut self, approval: ApprovalRequest) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Sets the label of all that the message was made of. Default [`Label::HOST`].
    #[must_use]
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = label;
        self
    }
}
