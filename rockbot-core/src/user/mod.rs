//! The protocol between user interfaces and agents over a bus.
//!
//! [`UserProxy`] is the client of an interface: it sends messages and waits for their replies.
//! The other side, which runs turns for them, is in `rockbot-host`. Types and topics are the same
//! as in the original RockBot, so that its interfaces and agents can share a bus with these.

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
    /// The topic of messages of users.
    pub const USER_MESSAGE: &str = "user.message";
    /// The topic of replies to messages that name no reply topic. Every interface receives it.
    pub const USER_RESPONSE: &str = "user.response";
    /// The topic of feedback on replies.
    pub const USER_FEEDBACK: &str = "user.feedback";
    /// The topic of requests for a conversation's history.
    pub const HISTORY_REQUEST: &str = "user.history.request";
    /// The topic of histories whose requests name no reply topic.
    pub const HISTORY_RESPONSE: &str = "user.history.response";
    /// The topic of decisions about tool calls that need an approval.
    pub const APPROVAL_DECISION: &str = "approval.decision";
}
