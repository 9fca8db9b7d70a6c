//! All stores in one PostgreSQL database: [`Postgres`]. Behind the feature `postgres`.
//!
//! **Many processes**, on one machine or several, can use the database at the same time. Turns
//! belong to one process at a time, by [claims](PostgresTurnJournal) with leases and fencing. A
//! process renews its leases, takes over turns that no process holds, and leaves the turns of a
//! session their order ([`ClusterJournal`](rockbot_core::turn::ClusterJournal)).
//!
//! **Writes** resolve when the server has committed them. A statement that waits for longer than
//! half a minute, or for a free connection for longer than 10 seconds, fails with a passing error.
//!
//! **The schema**, `rockbot` unless the [options](PostgresOptions) name another one, is made and
//! migrated by [`Postgres::connect`], under an advisory lock. A schema of a newer version is
//! refused.
//!
//! **Rows** belong to a principal and hold JSON, with the same members as in files. A row that
//! cannot be parsed is left out of lists; getting it or overwriting it is an error, and deleting
//! it works.
//!
//! The connection is encrypted where the URL or the options demand it.

mod conversation;
mod conversation_log;
mod journal;
mod long_term;
mod media;
mod options;
mod rules;
mod settings;
mod shared_documents;
mod skills;
mod storage;
mod stores;
#[cfg(test)]
mod tests;
mod timeline;
mod vectors;
mod working;

pub use conversation::PostgresConversationMemory;
pub use conversation_log::PostgresConversationLog;
pub use journal::PostgresTurnJournal;
pub use long_term::PostgresLongTermMemory;
pub use media::PostgresMediaStore;
pub use options::PostgresOptions;
pub use rules::PostgresRulesStore;
pub use settings::PostgresSettings;
pub use shared_documents::PostgresSharedDocuments;
pub use skills::PostgresSkillStore;
pub use storage::PostgresError;
pub use stores::Postgres;
pub use timeline::{PostgresFeedbackStore, PostgresSkillUsageStore, PostgresTimeline};
pub use vectors::PostgresVectorCache;
pub use working::PostgresWorkingMemory;
