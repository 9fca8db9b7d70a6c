//! For authors of stores, buses, model clients and subsystems: the contracts in full, with their
//! details and kits.
//!
//! A program finds what it names in the other modules of this crate. A crate that implements a
//! contract needs `rockbot-core` alone; these modules have the same items, and the details of the
//! stock implementations beside them. The suites of `rockbot::testing::conformance` say whether an
//! implementation keeps its contract.
//!
//! ```
//! use rockbot::implement::store::{TimelineEntry, TimelineStore};
//!
//! async fn count<T: TimelineEntry>(store: &dyn TimelineStore<T>) -> usize {
//!     # let _ = store;
//!     0
//! }
//! # let _ = count::<rockbot::implement::store::FeedbackEntry>;
//! ```

/// Details of agents and their hosts.
pub mod agent {
    pub use rockbot_core::subsystem::*;
    pub use rockbot_host::answer::*;
    pub use rockbot_host::{AnswerKind, MessageOptions, Stream};
}

/// Buses: publishers, subscribers, deliveries, envelopes.
pub mod bus {
    pub use rockbot_core::messaging::*;
    pub use rockbot_core::user::*;
}

/// Model clients, their layers and settings, tier selection, embeddings.
pub mod chat {
    pub use rockbot_core::chat::*;
    pub use rockbot_core::embedding::*;
    pub use rockbot_host::behavior::*;
    pub use rockbot_host::routing::*;
    #[cfg(feature = "llm")]
    pub use rockbot_llm::*;
}

/// Sections and values of settings, and the settings of the stock parts.
pub mod config {
    pub use rockbot_core::config::*;
    pub use rockbot_host::settings::*;
    #[cfg(feature = "llm")]
    pub use rockbot_llm::settings::*;
    #[cfg(feature = "memory")]
    pub use rockbot_memory::settings::*;
}

/// The parts of contents and their bounds.
pub mod content {
    pub use rockbot_core::content::*;
}

/// Details of MCP servers.
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub mod mcp {
    pub use rockbot_mcp::*;
}

/// The stores in files and in SQLite, recall, search by meaning.
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub mod memory {
    pub use rockbot_core::recall::*;
    pub use rockbot_memory::*;
}

/// Directories of agents and services.
pub mod service {
    pub use rockbot_core::service::*;
    pub use rockbot_remote::ServiceSearchSettings;
}

/// Stores and what their implementations share: documents, files, search.
pub mod store {
    pub use rockbot_core::store::*;
    pub use rockbot_core::{files, search};
    pub use rockbot_store::file::{
        ConversationOptions, Durability, FileConversationMemory, FileMediaStore, FileTurnJournal, JournalOptions,
    };
}

/// Registries, executors, schemas, large results.
pub mod tool {
    pub use rockbot_core::support::nearest_names;
    pub use rockbot_core::tool::*;
    pub use rockbot_host::large_result::*;
    pub use rockbot_host::tool::*;
}

/// Journals, records, hooks, delegation.
pub mod turn {
    pub use rockbot_core::turn::*;
    pub use rockbot_host::turn::*;
    pub use rockbot_host::{Resumed, TurnService};
}
