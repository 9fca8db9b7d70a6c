//! The session that gets the result of a turn.

use serde::{Deserialize, Serialize};

use super::BusyPolicy;
use crate::SessionId;

/// The session that gets the result of a turn as a message, and the name of the work in that
/// message.
///
/// ```
/// use rockbot_core::turn::{Recipient, TurnRequest};
///
/// let request = TurnRequest::new("research/1", "start", "Find out how cats purr.")
///     .with_recipient(Recipient::new("main", "cats"));
/// assert_eq!(request.recipient.unwrap().session.as_str(), "main");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Recipient {
    /// Session of the same principal.
    pub session: SessionId,
    /// Name of the work, for the model and the user.
    pub name: String,
    /// Policy while the session is busy. Default [`BusyPolicy::Steer`]: a turn that runs reads the
    /// result.
    pub busy: BusyPolicy,
}

impl Recipient {
    /// Creates a recipient whose running turn, if it has one, reads the result.
    pub fn new(session: impl Into<SessionId>, name: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            name: name.into(),
            busy: BusyPolicy::Steer,
        }
    }

    /// Sets the policy while the session is busy. Default [`BusyPolicy::Steer`].
    #[must_use]
    pub fn with_busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }
}
