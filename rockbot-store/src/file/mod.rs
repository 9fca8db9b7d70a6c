//! Stores in files that people can read and edit: one folder and one lock for each store.
//!
//! [`FileMemory`] opens all stores of an agent's memory in a data folder. The files of the
//! principal `local` lie in the folder of the store itself, the files of other principals in
//! `@{principal}/`. Ids become encoded file names, and no symbolic link is followed, so a request
//! never leaves the folder of its store.
//!
//! | store | files |
//! |---|---|
//! | [`FileTurnJournal`] | `turns/turns-00000001.jsonl`, …, a line for each step of a turn |
//! | [`FileConversationMemory`] | `conversations/{session}.json` and `{session}.jsonl` |
//! | [`FileMediaStore`] | `media/{digest}`, the bytes of an image or file |
//! | [`FileLongTermMemory`] | `memory/{category}/{id}.json`, a document for each memory |
//! | [`FileSkillStore`] | `skills/{name}.json`, a document for each skill |
//! | [`FileSkillUsageStore`] | `skill-usage/{session}.jsonl`, a line for each use |
//! | [`FileFeedbackStore`] | `feedback/{session}.jsonl`, a line for each entry |
//! | [`FileRulesStore`] | `rules.md`, `rules/*.md` and `timezone` |
//! | [`FileConversationLog`] | `conversation-log/turns.jsonl` and `readers.json` |
//! | [`FileVectorCache`] | `embeddings/vectors.jsonl`, a line for each text |
//! | [`FileWorkingMemory`] | `working-memory/{group}.json` and `changes.jsonl` |

mod conversation;
mod conversation_log;
mod feedback;
mod journal;
mod long_term;
mod media;
mod memory;
mod rules;
mod skill_usage;
mod skills;
mod timeline;
mod vectors;
mod working;

pub use conversation::{ConversationOptions, FileConversationMemory};
pub use conversation_log::FileConversationLog;
pub use feedback::FileFeedbackStore;
pub use journal::{Durability, FileTurnJournal, JournalOptions};
pub use long_term::FileLongTermMemory;
pub use media::FileMediaStore;
pub use memory::{FileMemory, FileMemoryOptions};
pub use rules::FileRulesStore;
pub use skill_usage::FileSkillUsageStore;
pub use skills::FileSkillStore;
pub use timeline::FileTimeline;
pub use vectors::FileVectorCache;
pub use working::FileWorkingMemory;
