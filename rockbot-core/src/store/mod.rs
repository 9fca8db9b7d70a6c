//! What an agent remembers: narrow traits, each with an in-memory version.
//!
//! Every operation takes the [`Principal`](crate::Principal) on whose behalf it is done; nothing is ever read across principals.

mod conversation;

pub use conversation::{ConversationMemory, ConversationTurn, InMemoryConversationMemory, StoreError};
