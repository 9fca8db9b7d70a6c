//! What starts a turn.

use serde::{Deserialize, Serialize};

use super::Budget;
use crate::chat::{ModelTier, OutputSchema};
use crate::context::{Origin, Priority, Trust};
use crate::{Digest, MessageId, Principal, SessionId, TurnId};

/// What a message does when its session is busy with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyPolicy {
    /// It waits until it is its turn.
    #[default]
    Queue,
    /// It joins the running turn at that turn's next model call. With a shape, tier or budget of its own it waits
    /// until it is its turn.
    Steer,
    /// It takes the place of the running turn, and of turns of its session that wait for a person.
    Supersede,
}

/// A message that wants an answer.
///
/// ```
/// # use rockbot_core::turn::TurnRequest;
/// let request = TurnRequest::new("session-1", "message-1", "What is the time?");
/// assert_eq!(request.turn_id(), TurnRequest::new("session-1", "message-1", "other").turn_id());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRequest {
    /// The conversation.
    pub session: SessionId,
    /// The message: the same id again is the same message delivered again.
    pub message: MessageId,
    /// What the person said.
    pub text: String,
    /// On whose behalf.
    #[serde(default)]
    pub principal: Principal,
    /// Which program sent the message; part of its identity.
    #[serde(default)]
    pub source: String,
    /// Through which door it came.
    #[serde(default, alias = "door")]
    pub origin: Origin,
    /// Whose work goes first.
    #[serde(default)]
    pub priority: Priority,
    /// How far the sender can be trusted.
    pub trust: Trust,
    /// How capable a model; `None` means the balanced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<ModelTier>,
    /// What to do when the session is busy.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Limits of its own; `None` means the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The shape that the answer must have, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// The turn that asks, if it is another turn, and its depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(TurnId, u32)>,
    /// The caller's W3C `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Where the final reply goes, for whoever delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What the final reply is correlated by, for whoever delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

impl TurnRequest {
    /// A message of the local user.
    pub fn new(session: impl Into<SessionId>, message: impl Into<MessageId>, text: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            message: message.into(),
            text: text.into(),
            principal: Principal::default(),
            source: String::new(),
            origin: Origin::User,
            priority: Priority::User,
            trust: Trust::User,
            tier: None,
            busy: BusyPolicy::Queue,
            budget: None,
            output: None,
            parent: None,
            trace: None,
            reply_to: None,
            correlation_id: None,
        }
    }

    /// The turn that this message starts: made from principal, source, session and message id, so that a
    /// message delivered twice is one turn.
    pub fn turn_id(&self) -> TurnId {
        let parts = [
            self.principal.as_str(),
            &self.source,
            self.session.as_str(),
            self.message.as_str(),
        ];
        TurnId::from(Digest::of(parts).short())
    }

    /// The digest of what was said: another text under the same identity is an error.
    pub fn body_digest(&self) -> Digest {
        Digest::of([&self.text])
    }
}
