//! All stores in one SQLite file: [`SqliteMemory`]. Behind the feature `sqlite`.
//!
//! **One process** at a time has the file open: `….lock` beside it says so. Other programs may read it meanwhile, and
//! must not write. `…-wal` and `…-shm` belong to the file while it is open: copy it when it is closed, or with SQLite's
//! own backup. It must lie on a local disk.
//!
//! **A write** resolves when the disk has it: it survives `kill -9` and power loss. One thread writes; those who wait
//! at the same time share one commit. Reads run side by side, and see everything that was acknowledged before them.
//!
//! **Rows** belong to a principal and hold JSON: the documents and lines that stores in files hold, member by member.
//! Members that we do not know are kept. Long-term memory and skills are found by the same index as in files, which is
//! built of the rows at the first search.
//!
//! **Damage**: a file that SQLite finds damaged is not opened and not changed. A row that cannot be read is left out of
//! lists; asking for it is an error, so is writing over it, and deleting it takes it away.
//!
//! **Versions**: a file of a newer version, and one of another program, is refused.

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
