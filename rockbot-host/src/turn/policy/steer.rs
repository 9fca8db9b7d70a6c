//! Messages that join a running turn reach the model at its next call, as what they are: the user speaking.

use rockbot_core::chat::{ChatMessage, ContextReason};

/// The messages for the model, in the order in which they came.
pub(in crate::turn) fn messages(said: &mut Vec<String>) -> impl Iterator<Item = ChatMessage> {
    said.drain(..)
        .map(|text| ChatMessage::user(text).because(ContextReason::Joined))
}
