//! What agents of the rockbot framework remember, in files that people can read and edit.
//!
//! Every store is a folder that one process at a time can open. Its files have the formats of the original of this
//! framework, whose data folders open as they are. Whatever a store is asked for, it stays in its folder: ids become
//! encoded names, and no link is followed. What is damaged is set aside or skipped, counted, and never fatal.
//!
//! [`FileMemory`] opens all stores of a data folder:
//!
//! * [`Memory`]: all of it for a host, with the tools by which a model uses it
//! * [`long_term`]: facts, one document each
//! * [`conversation_log`]: everything that was said, for those who learn from it afterwards
//! * [`rules`]: what the agent must keep to, Markdown
//! * [`feedback`]: signs of how well the agent did, lines for each session
//! * [`skill`]: skills, one document each, a log of their uses, and folders of skills as other agents have them
//! * [`working`]: texts that are kept for a while
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
mod blocking;
pub mod conversation_log;
pub mod copy;
mod documents;
pub mod evaluation;
mod external_edit;
pub mod feedback;
mod json_file;
pub mod long_term;
mod memory;
mod options;
mod path;
mod principal_cache;
pub mod recall;
mod retention;
pub mod rules;
pub mod semantic;
mod session_lines;
pub mod settings;
pub mod signals;
pub mod skill;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite;
mod subsystem;
mod tools;
mod work;
pub mod working;

pub use conversation_log::{ConversationLogOptions, FileConversationLog};
pub use evaluation::{EvaluationOptions, SessionEvaluation};
pub use feedback::FileFeedbackStore;
pub use long_term::FileLongTermMemory;
pub use memory::{FileMemory, FileMemoryOptions};
pub use options::FileOptions;
pub use retention::Retention;
pub use rules::FileRulesStore;
pub use semantic::{Embedder, SemanticMemory, SemanticMemoryOptions};
pub use signals::FeedbackSignals;
pub use skill::{FileSkillStore, FileSkillUsageStore, SkillFolder};
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite::{SqliteMemory, SqliteMemoryOptions};
pub use subsystem::Memory;
pub use working::{FileWorkingMemory, WorkingMemoryOptions};
