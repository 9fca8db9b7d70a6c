//! The messages between interfaces and agents. Their members are camelCase on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UserProxyTopics;
use crate::chat::Role;
use crate::content::Content;
use crate::messaging::Message;
use crate::store::ConversationQuery;
use crate::turn::Approval;
use crate::{MessageId, SessionId, Timestamp, TurnId};

/// A message of a user to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserMessage {
    /// The content of the message: a text, or parts.
    pub content: Content,
    /// The conversation.
    pub session_id: SessionId,
    /// The user, as the interface identifies them; empty if it serves one person only. Conversations
    /// of different users are kept apart.
    #[serde(default)]
    pub user_id: String,
    /// The name of the agent that is meant. Default `None`: any agent that listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
}

impl UserMessage {
    /// Creates a message with `content` in the conversation `session_id`, without a user.
    pub fn new(session_id: impl Into<SessionId>, content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            session_id: session_id.into(),
            user_id: String::new(),
            target_agent: None,
        }
    }

    /// Sets the user, as the interface identifies them. Default empty.
    #[must_use]
    pub fn with_user_id(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = user_id.into();
        self
    }

    /// Sets the name of the agent that is meant. Default `None`: any agent that listens.
    #[must_use]
    pub fn with_target_agent(mut self, target_agent: impl Into<String>) -> Self {
        self.target_agent = Some(target_agent.into());
        self
    }
}

impl Message for UserMessage {
    const TYPE: &'static str = "RockBot.UserProxy.UserMessage";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_MESSAGE);
}

/// A message of an agent to a user: the final reply, or before it a progress report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentReply {
    /// The text, or parts. It is never empty in a final reply.
    pub content: Content,
    /// The conversation.
    pub session_id: SessionId,
    /// The name of the agent.
    pub agent_name: String,
    /// `true` for the final reply; `false` marks a progress report. Default `true`.
    #[serde(default = "yes")]
    pub is_final: bool,
    /// The same content for programs, with details that the text leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_data: Option<Value>,
    /// The media type of `structured_data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

fn yes() -> bool {
    true
}

impl AgentReply {
    /// The [`AgentReply::content_type`] of a progress report: `structured_data` is a
    /// [`TurnProgress`](crate::turn::TurnProgress).
    pub const PROGRESS: &str = "application/vnd.rockbot.turn-progress+json";

    /// The [`AgentReply::content_type`] of a message that answers none of the user's:
    /// `structured_data` is an [`Announcement`](crate::turn::Announcement).
    pub const ANNOUNCEMENT: &str = "application/vnd.rockbot.announcement+json";

    /// The [`AgentReply::content_type`] of a final reply that is not an answer: the member `status` of
    /// `structured_data` is the [`TurnStatus`](crate::turn::TurnStatus), such as failed or superseded.
    pub const STATUS: &str = "application/vnd.rockbot.turn-status+json";

    /// Creates a final reply of the agent `agent_name` in the conversation `session_id`.
    pub fn new(session_id: impl Into<SessionId>, agent_name: impl Into<String>, content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            session_id: session_id.into(),
            agent_name: agent_name.into(),
            is_final: true,
            structured_data: None,
            content_type: None,
        }
    }

    /// Sets whether this is the final reply. Default `true`.
    #[must_use]
    pub fn with_final(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    /// Sets the same content for programs. Default none.
    #[must_use]
    pub fn with_structured_data(mut self, structured_data: impl Into<Option<Value>>) -> Self {
        self.structured_data = structured_data.into();
        self
    }

    /// Sets the media type of `structured_data`. Default none.
    #[must_use]
    pub fn with_content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }
}

impl Message for AgentReply {
    const TYPE: &'static str = "RockBot.UserProxy.AgentReply";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_RESPONSE);
}

/// A request for the history of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationHistoryRequest {
    /// The conversation.
    pub session_id: SessionId,
    /// The user, as in [`UserMessage::user_id`]. The original RockBot never sends it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// The part of the conversation. Default `None`: all that the agent remembers, as for the
    /// original RockBot, which never sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ConversationQuery>,
}

impl ConversationHistoryRequest {
    /// Creates a request for a conversation without a user.
    pub fn new(session_id: impl Into<SessionId>) -> Self {
        Self {
            session_id: session_id.into(),
            user_id: String::new(),
            page: None,
        }
    }

    /// Sets the part of the conversation. Default `None`: all that the agent remembers.
    #[must_use]
    pub fn with_page(mut self, page: impl Into<Option<ConversationQuery>>) -> Self {
        self.page = page.into();
        self
    }

    /// Sets the user, as in [`UserMessage::user_id`].
    #[must_use]
    pub fn with_user_id(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = user_id.into();
        self
    }
}

impl Message for ConversationHistoryRequest {
    const TYPE: &'static str = "RockBot.UserProxy.ConversationHistoryRequest";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::HISTORY_REQUEST);
}

/// The history of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationHistoryResponse {
    /// The messages that the agent remembers, oldest first.
    pub turns: Vec<HistoryTurn>,
    /// The turn whose entries follow the page before this page, see [`ConversationPage::earlier`].
    /// `None` if there is no such page, and if no page was requested.
    ///
    /// [`ConversationPage::earlier`]: crate::store::ConversationPage::earlier
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<TurnId>,
}

impl ConversationHistoryResponse {
    /// Creates a history from its messages, oldest first.
    pub fn new(turns: Vec<HistoryTurn>) -> Self {
        Self { turns, earlier: None }
    }

    /// Sets the turn whose entries follow the page before this page. Default `None`.
    #[must_use]
    pub fn with_earlier(mut self, earlier: impl Into<Option<TurnId>>) -> Self {
        self.earlier = earlier.into();
        self
    }
}

impl Message for ConversationHistoryResponse {
    const TYPE: &'static str = "RockBot.UserProxy.ConversationHistoryResponse";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::HISTORY_RESPONSE);
}

/// One message of a conversation's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryTurn {
    /// The role of the author.
    pub role: Role,
    /// The content: a text, or parts.
    pub content: Content,
    /// The time of the message.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

impl HistoryTurn {
    /// Creates a message of the history.
    pub fn new(role: Role, content: impl Into<Content>, timestamp: Timestamp) -> Self {
        Self {
            role,
            content: content.into(),
            timestamp,
        }
    }
}

/// The feedback of a user on a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserFeedback {
    /// The conversation.
    pub session_id: SessionId,
    /// The id of the message that was replied to.
    pub message_id: MessageId,
    /// `true` if the reply was good: thumbs up or thumbs down.
    pub is_positive: bool,
    /// The user, as in [`UserMessage::user_id`]. The original RockBot never sends it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// The name of the agent that replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
}

impl UserFeedback {
    /// Creates the feedback without a user and without the name of an agent.
    pub fn new(session_id: impl Into<SessionId>, message_id: impl Into<MessageId>, is_positive: bool) -> Self {
        Self {
            session_id: session_id.into(),
            message_id: message_id.into(),
            is_positive,
            user_id: String::new(),
            agent_name: None,
        }
    }

    /// Sets the user, as in [`UserMessage::user_id`].
    #[must_use]
    pub fn with_user_id(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = user_id.into();
        self
    }

    /// Sets the name of the agent that replied.
    #[must_use]
    pub fn with_agent_name(mut self, agent_name: impl Into<String>) -> Self {
        self.agent_name = Some(agent_name.into());
        self
    }
}

impl Message for UserFeedback {
    const TYPE: &'static str = "RockBot.UserProxy.UserFeedback";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::USER_FEEDBACK);
}

impl Message for Approval {
    const TYPE: &'static str = "rockbot.Approval";
    const TOPIC: Option<&'static str> = Some(UserProxyTopics::APPROVAL_DECISION);
}
