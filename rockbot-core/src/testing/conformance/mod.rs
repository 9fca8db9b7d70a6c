//! Conformance suites: checks that an implementation keeps the contract of its trait.
//!
//! For authors of stores, journals, buses, clients and registries. Each suite takes a factory of
//! fresh, empty implementations, runs every part of the contract on one of its own, and panics
//! with the part that is broken. To test a store, call the suite of its trait in a test of your
//! own:
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
mod chat_wrapper;
mod cluster_journal;
mod conversation_log;
mod conversation_memory;
mod embedding_client;
mod feedback_store;
mod long_term_memory;
mod media_store;
mod rules_store;
mod shared_documents;
mod skill_store;
mod skill_usage_store;
mod timeline;
mod tool_registry;
mod turn_journal;
mod vector_cache;
mod working_memory;

pub use bus::{bus, bus_of_exact_topics};
pub use chat_client::{ChatScene, chat_client};
pub use chat_wrapper::chat_wrapper;
pub use cluster_journal::cluster_journal;
pub use conversation_log::conversation_log;
pub use conversation_memory::conversation_memory;
pub use embedding_client::embedding_client;
pub use feedback_store::feedback_store;
pub use long_term_memory::long_term_memory;
pub use media_store::media_store;
pub use rules_store::rules_store;
pub use shared_documents::shared_documents;
pub use skill_store::skill_store;
pub use skill_usage_store::skill_usage_store;
pub use tool_registry::tool_registry;
pub use turn_journal::turn_journal;
pub use vector_cache::vector_cache;
pub use working_memory::working_memory;
