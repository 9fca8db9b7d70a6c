//! The memory of rockbot agents, in files that people can read and edit.
//!
//! The stores are those of `rockbot-store`, or any that implement the traits of `rockbot-core`.
//! [`FileMemory`] opens all stores of a data folder; [`file`](mod@file) lists them. A host needs
//! only [`Memory`]:
//!
//! * [`Memory`]: the subsystem of a host that opens the stores, with the tools by which a model
//!   uses them
//! * [`skill_folder`]: import and export of skills in the open `SKILL.md` format
//!
//! [`SemanticMemory`] adds search by meaning to any long-term memory, with the vectors of an
//! embedding model. [`copy`] copies the data of one store into another. [`recall`] selects the
//! entries that a model sees before a turn.
//!
//! Two further subsystems record feedback:
//!
//! * [`signals`]: feedback from corrections by users and from failing tools
//! * [`evaluation`]: summaries of ended sessions, judged by a model
//!
//! [`dreams`] tends all of it while users are silent: every change is a plan that can be shown
//! and undone.
//!
//! [`settings`] has the sections of a host's configuration that these parts read.
#![cfg_attr(
    feature = "sqlite",
    doc = "\n[`sqlite`] keeps all stores in one SQLite file instead."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod background;
pub mod copy;
pub mod dreams;
pub mod evaluation;
mod json_file;
pub mod recall;
mod retention;
pub mod semantic;
pub mod settings;
pub mod signals;
pub mod skill_folder;
mod skill_service;
mod stale;
mod subsystem;
mod tools;

pub use dreams::{DreamOptions, Dreaming, Dreams};
pub use evaluation::{EvaluationOptions, SessionEvaluation};
pub use retention::Retention;
/// The stores in SQLite of `rockbot-store`, re-exported.
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
#[doc(no_inline)]
pub use rockbot_store::sqlite::{self, SqliteMemory, SqliteMemoryOptions};
/// The stores in files of `rockbot-store`, re-exported.
#[doc(no_inline)]
pub use rockbot_store::{
    ConversationLogOptions, FileOptions, WorkingMemoryOptions,
    file::{
        self, FileConversationLog, FileFeedbackStore, FileLongTermMemory, FileMemory, FileMemoryOptions,
        FileRulesStore, FileSkillStore, FileSkillUsageStore, FileWorkingMemory,
    },
};
pub use semantic::{Embedder, SemanticMemory, SemanticMemoryOptions};
pub use signals::FeedbackSignals;
pub use skill_folder::SkillFolder;
pub use subsystem::Memory;
