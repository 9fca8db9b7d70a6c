//! Steering: messages of the user that join a running turn reach the model with its next request,
//! in the user's role.

use rockbot_core::chat::{ChatMessage, Content, ContextReason};

/// Takes the joined messages, and returns them as messages for the model in the order of their
/// arrival.
pub(in crate::turn) fn messages(joined: &mut Vec<Content>) -> impl Iterator<Item = ChatMessage> {
    joined
        .drain(..)
        .map(|content| ChatMessage::user(content).because(ContextReason::Joined))
}
