//! What people and their interfaces say to an agent over a bus, and what the agent says back.
//!
//! [`UserProxy`] is the client of an interface: it sends messages and waits for their replies. The other side, which
//! makes turns of them, is in `rockbot-host`. Types and topics are those of the original, so that its interfaces and
//! agents and ours can share a bus.

mod messages;
mod proxy;

pub use messages::{
    AgentReply, ConversationHistoryRequest, ConversationHistoryResponse, HistoryTurn, UserFeedback, UserMessage,
};
pub use proxy::UserProxy;

/// The topics that interfaces and agents use.
#[derive(Debug)]
pub struct UserProxyTopics;

impl UserProxyTopics {
    /// Where messages of users go.
    pub const USER_MESSAGE: &str = "user.message";
    /// Where the reply to a message goes whose sender names no topic: every interface sees it.
    pub const USER_RESPONSE: &str = "user.response";
    /// Where thumbs up and thumbs down go.
    pub const USER_FEEDBACK: &str = "user.feedback";
    /// Where questions for a conversation go.
    pub const HISTORY_REQUEST: &str = "user.history.request";
    /// Where conversations go whose asker names no topic.
    pub const HISTORY_RESPONSE: &str = "user.history.response";
    /// Where a person's decisions about tool calls go.
    pub const APPROVAL_DECISION: &str = "approval.decision";
}
