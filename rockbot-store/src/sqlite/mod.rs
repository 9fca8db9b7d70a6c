//! All stores in one SQLite file: [`SqliteMemory`]. Behind the feature `sqlite`.
//!
//! **One process** at a time can open the file; the lock is `….lock` beside it. Other programs
//! may read the file meanwhile, and must not write. `…-wal` and `…-shm` belong to the file while
//! it is open: copy the file when it is closed, or with SQLite's own backup. It must be on a
//! local disk.
//!
//! **Writes** resolve when they are synced to disk, and survive `kill -9` and power loss. One
//! thread writes; concurrent writes share one commit (group commit). Reads run concurrently, each
//! on a snapshot, and see every write that resolved before they began.
//!
//! **Rows** belong to a principal and hold JSON, with the same members as in files. Unknown
//! members are preserved. Long-term memory and skills use the same word index as in files, which
//! is built from the rows at the first search.
//!
//! **Damage**: a file that SQLite finds damaged is neither opened nor changed. A row that cannot
//! be parsed is left out of lists; getting it or overwriting it is an error, and deleting it
//! works.
//!
//! **Versions**: a file of a newer version or of another program is refused.
//!
//! SQLite. One process holds `agent.db.lock`. One thread writes (WAL, `synchronous=FULL`) with
//! group commit: up to 256 queued writes share one transaction, each in a savepoint, so that a
//! failed write is rolled back alone. Up to 8 reads run concurrently, each on a snapshot. Rows
//! hold the JSON of the files, unknown members preserved. The word index is built from the rows
//! at the first search and updated after each commit. Newer, foreign and damaged files
//! (`quick_check`) are refused unchanged.
//!
//! SQLite holds documents, not columns: only values that a query needs stand beside the JSON, and
//! both backends search one index of ours, not SQLite's text search.

mod conversation;
mod conversation_log;
mod feedback;
mod long_term;
mod memory;
mod rules;
mod skill_usage;
mod skills;
mod storage;
#[cfg(test)]
mod tests;
mod timeline;
mod working;

pub use conversation::SqliteConversationMemory;
pub use conversation_log::SqliteConversationLog;
pub use feedback::SqliteFeedbackStore;
pub use long_term::SqliteLongTermMemory;
pub use memory::{SqliteMemory, SqliteMemoryOptions};
pub use rules::SqliteRulesStore;
pub use skill_usage::SqliteSkillUsageStore;
pub use skills::SqliteSkillStore;
pub use storage::SqliteError;
pub use timeline::SqliteTimeline;
pub use working::SqliteWorkingMemory;
