//! Stores of an agent's memory: narrow traits, each with an in-memory version.
//!
//! To write a store, implement its trait, report failures as [`StoreError`] with the right
//! [`StoreErrorKind`], and run the trait's conformance suite in `testing::conformance`. The
//! module `files` holds the code that stores in files share.
//!
//! Every operation takes the [`Principal`](crate::Principal) on whose behalf it runs. No
//! operation but a purge crosses principals.

mod chunk_keys;
mod conversation;
mod conversation_document;
mod conversation_log;
mod conversation_page;
mod conversation_turn;
mod endorsed_value;
mod error;
mod feedback;
mod long_term;
mod media;
mod memory_entry;
mod memory_query;
mod namespace;
mod path;
mod per_principal;
mod rules;
mod shared_documents;
mod skill;
mod skill_usage;
mod timeline;
mod vectors;
mod working;
mod working_entries;
mod working_note;

pub use chunk_keys::{ChunkKeyForm, ChunkKeys, is_result_chunk, is_result_entry};
pub use conversation::{ConversationMemory, InMemoryConversationMemory};
pub use conversation_document::ConversationDocument;
pub use conversation_log::{ConversationLog, InMemoryConversationLog, LogBatch, LogEntry, LogOffset};
pub use conversation_page::{ConversationPage, ConversationQuery};
pub use conversation_turn::{CallRound, ConversationTurn, PastCall};
pub use endorsed_value::EndorsedValue;
pub use error::{StoreError, StoreErrorKind};
pub use feedback::{FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryFeedbackStore};
pub use long_term::{InMemoryLongTermMemory, LongTermMemory, LongTermMemoryExt};
pub use media::{InMemoryMediaStore, MediaStore};
pub use memory_entry::{MemoryEntry, Remembered, remembered};
pub use memory_query::MemoryQuery;
pub use namespace::{Access, Namespace};
pub use path::{PathError, StorePath};
pub use rules::{InMemoryRulesStore, Rule, RulesStore};
pub use shared_documents::{LockedDocument, SharedDocuments};
pub use skill::{InMemorySkillStore, Skill, SkillStore, SkillVersion};
pub use skill_usage::{InMemorySkillUsageStore, SkillUsage, SkillUsageStore};
pub use timeline::{InMemoryTimeline, TimelineEntry, TimelineStore};
pub use vectors::VectorCache;
pub use working::{InMemoryWorkingMemory, WorkingMemory};
pub use working_entries::{WorkingEntries, WorkingLimits};
pub use working_note::{DEFAULT_TTL, WorkingEntry, WorkingMemoryError, WorkingNote};

use crate::chat::Provenance;
use crate::context::Trust;

/// Returns the provenance of a text that another program stored without one: unknown and untrusted.
fn unknown_provenance() -> Provenance {
    Provenance {
        source: "unknown".into(),
        trust: Trust::Untrusted,
    }
}
