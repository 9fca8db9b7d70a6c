//! The messages between interfaces and agents. Their members are camelCase on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UserProxyTopics;
use crate::chat::Role;
use crate::messaging::Message;
use crate::turn::Approval;
use crate::{MessageId, SessionId, Timestamp};

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// The words.
    pub content: String,
    /// In which conversation.
    pub session_id: SessionId,
    /// Who, as the interface knows them; empty when it serves one person only. Conversations of different users are
    /// kept apart.
    #[serde(default)]
    pub user_id: String,
    /// Which agent is meant; any that listens when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
}

impl UserMessage {
    /// `content`, said in the conversation `session_id`.
    pub fn new(session_id: impl Into<SessionId>, content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            session_id: session_id.into(),
            user_id: String::new(),
            target_agent: None,
        }
    }
}

impl Message for UserMessage {
    const TYPE: &'static str = "RockBot.UserProxy.UserMessage";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_MESSAGE);
}

/// What an agent says: the one final reply to a message, or before it how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReply {
    /// The words. A final reply always has some.
    pub content: String,
    /// In which conversation.
    pub session_id: SessionId,
    /// Which agent.
    pub agent_name: String,
    /// Whether this is the reply; `false` is a report on the way to it.
    #[serde(default = "yes")]
    pub is_final: bool,
    /// The same for programs, where there is more to say than words can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_data: Option<Value>,
    /// What `structured_data` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

fn yes() -> bool {
    true
}

impl AgentReply {
    /// The [`AgentReply::content_type`] of a report: `structured_data` is a
    /// [`TurnProgress`](crate::turn::TurnProgress).
    pub const PROGRESS: &str = "application/vnd.rockbot.turn-progress+json";

    /// The [`AgentReply::content_type`] of a final reply that is no answer: the member `status` of `structured_data` is
    /// the [`TurnStatus`](crate::turn::TurnStatus), such as failed or superseded.
    pub const STATUS: &str = "application/vnd.rockbot.turn-status+json";
}

impl Message for AgentReply {
    const TYPE: &'static str = "RockBot.UserProxy.AgentReply";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_RESPONSE);
}

/// A question for what was said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationHistoryRequest {
    /// Which conversation.
    pub session_id: SessionId,
    /// Whose, as [`UserMessage::user_id`] says; the original never sends it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
}

impl Message for ConversationHistoryRequest {
    const TYPE: &'static str = "RockBot.UserProxy.ConversationHistoryRequest";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::HISTORY_REQUEST);
}

/// What was said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationHistoryResponse {
    /// As far as the agent remembers it, oldest first.
    pub turns: Vec<HistoryTurn>,
}

impl Message for ConversationHistoryResponse {
    const TYPE: &'static str = "RockBot.UserProxy.ConversationHistoryResponse";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::HISTORY_RESPONSE);
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryTurn {
    /// Who spoke.
    pub role: Role,
    /// What.
    pub content: String,
    /// When.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

/// Whether a reply was good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserFeedback {
    /// In which conversation.
    pub session_id: SessionId,
    /// Which message was replied to.
    pub message_id: MessageId,
    /// Thumbs up, or down.
    pub is_positive: bool,
    /// Whose, as [`UserMessage::user_id`] says; the original never sends it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// Which agent replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
}

impl Message for UserFeedback {
    const TYPE: &'static str = "RockBot.UserProxy.UserFeedback";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_FEEDBACK);
}

impl Message for Approval {
    const TYPE: &'static str = "rockbot.Approval";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::APPROVAL_DECISION);
}
