//! Steering: messages of the user that join a running turn reach the model with its next request, in the user's role.

use rockbot_core::chat::{ChatMessage, ContextReason};

/// Takes the joined texts, and returns them as messages for the model in the order of their arrival.
pub(in crate::turn) fn messages(texts: &mut Vec<String>) -> impl Iterator<Item = ChatMessage> {
    texts
        .drain(..)
        .map(|text| ChatMessage::user(text).because(ContextReason::Joined))
}
