//! Suites that check whether an implementation keeps the promises of its trait.
//!
//! Each suite takes a factory that makes a fresh, empty implementation, and panics with the promise that was
//! broken. Authors of stores and registries run them in their own tests:
//!
//! ```
//! use rockbot_core::store::InMemoryConversationMemory;
//! use rockbot_core::testing::conformance;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! conformance::conversation_memory(async || InMemoryConversationMemory::new()).await;
//! # }
//! ```

mod bus;
mod chat_client;
mod conversation_memory;
mod tool_registry;
mod turn_journal;

pub use bus::bus;
pub use chat_client::chat_client;
pub use conversation_memory::conversation_memory;
pub use tool_registry::tool_registry;
pub use turn_journal::turn_journal;
