//! The stores of the rockbot agent framework: turns, conversations, media and memory, on disk and in
//! databases.
//!
//! The traits are in `rockbot-core`, with their versions in memory. Each backend has a folder
//! here, with a file or folder for each trait under the same names:
//!
//! | trait | in files ([`file`](mod@file)) | in SQLite (`sqlite`) | in PostgreSQL (`postgres`) |
//! |---|---|---|---|
//! | `TurnJournal` | [`FileTurnJournal`](file::FileTurnJournal) | | `PostgresTurnJournal` |
//! | `ConversationMemory` | [`FileConversationMemory`](file::FileConversationMemory) | `SqliteConversationMemory` | `PostgresConversationMemory` |
//! | `MediaStore` | [`FileMediaStore`](file::FileMediaStore) | | `PostgresMediaStore` |
//! | `ConversationLog` | [`FileConversationLog`](file::FileConversationLog) | `SqliteConversationLog` | `PostgresConversationLog` |
//! | `LongTermMemory` | [`FileLongTermMemory`](file::FileLongTermMemory) | `SqliteLongTermMemory` | `PostgresLongTermMemory` |
//! | `WorkingMemory` | [`FileWorkingMemory`](file::FileWorkingMemory) | `SqliteWorkingMemory` | `PostgresWorkingMemory` |
//! | `SkillStore` | [`FileSkillStore`](file::FileSkillStore) | `SqliteSkillStore` | `PostgresSkillStore` |
//! | `SkillUsageStore` | [`FileSkillUsageStore`](file::FileSkillUsageStore) | `SqliteSkillUsageStore` | `PostgresSkillUsageStore` |
//! | `RulesStore` | [`FileRulesStore`](file::FileRulesStore) | `SqliteRulesStore` | `PostgresRulesStore` |
//! | `FeedbackStore` | [`FileFeedbackStore`](file::FileFeedbackStore) | `SqliteFeedbackStore` | `PostgresFeedbackStore` |
//! | `VectorCache` | [`FileVectorCache`](file::FileVectorCache) | | `PostgresVectorCache` |
//! | `SharedDocuments` | | | `PostgresSharedDocuments` |
//!
//! A store in files is a folder that one process at a time can open. A store never leaves its
//! folder: ids become encoded file names, and symbolic links are not followed. Damaged files are
//! quarantined, damaged lines are skipped; both are counted, and neither is fatal. The file
//! formats are those of the original RockBot, whose data folders open unchanged.
//!
//! [`kit`] has the parts that other crates build files of their own on.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod file;
mod options;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub mod postgres;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite;
mod storage;

/// Parts of stores that other crates build files of their own on: folders with a lock, work on
/// blocking threads with its errors, and a cache of each principal's state.
pub mod kit {
    pub use crate::storage::blocking::{blocking, failed, invalid};
    pub use crate::storage::folder::{file_name, open_folder};
    pub use crate::storage::principal_cache::PrincipalCache;
}

pub use options::{ConversationLogOptions, FileOptions, WorkingMemoryOptions};
