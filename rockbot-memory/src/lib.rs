//! What agents of the rockbot framework remember, in files that people can read and edit.
//!
//! Every store is a folder that one process at a time can open. Its files have the formats of the original of this
//! framework, whose data folders open as they are. Whatever a store is asked for, it stays in its folder: ids become
//! encoded names, and no link is followed. What is damaged is set aside or skipped, counted, and never fatal.
//!
//! [`FileMemory`] opens all stores of a data folder; [`file`] lists them.
//!
//! * [`Memory`]: the subsystem of a host that opens the stores, with the tools by which a model uses them
//! * [`file`]: a store in files for each store trait of `rockbot-core`
//! * [`skill_folder`]: import and export of skills in the open `SKILL.md` format
//!
//! [`SemanticMemory`] finds facts by what they mean, too, with the vectors of a model.
//! [`copy`] brings what one store has into another. [`recall`] says what of all this a model is shown before a turn.
//!
//! Parts of a host that learn from what happens:
//!
//! * [`signals`]: what people and tools let know about how well the agent did
//! * [`evaluation`]: how sessions that have ended went
//!
//! [`settings`] says what of it a host's configuration decides.
#![cfg_attr(
    feature = "sqlite",
    doc = "\n[`sqlite`] keeps all of it in one SQLite file, for people who prefer that."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod background;
pub mod copy;
pub mod evaluation;
pub mod file;
mod options;
pub mod recall;
mod retention;
pub mod semantic;
pub mod settings;
pub mod signals;
pub mod skill_folder;
mod skill_service;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite;
mod storage;
mod subsystem;
mod tools;

pub use evaluation::{EvaluationOptions, SessionEvaluation};
pub use file::{
    FileConversationLog, FileFeedbackStore, FileLongTermMemory, FileMemory, FileMemoryOptions, FileRulesStore,
    FileSkillStore, FileSkillUsageStore, FileWorkingMemory,
};
pub use options::{ConversationLogOptions, FileOptions, WorkingMemoryOptions};
pub use retention::Retention;
pub use semantic::{Embedder, SemanticMemory, SemanticMemoryOptions};
pub use signals::FeedbackSignals;
pub use skill_folder::SkillFolder;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite::{SqliteMemory, SqliteMemoryOptions};
pub use subsystem::Memory;
