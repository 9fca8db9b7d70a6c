//! What agents of the rockbot framework remember, in files that people can read and edit.
//!
//! Every store is a folder that one process at a time can open. Its files have the formats of the original of this
//! framework, whose data folders open as they are. Whatever a store is asked for, it stays in its folder: ids become encoded names,
//! and no link is followed. What is damaged is set aside or skipped, counted, and never fatal.
//!
//! * [`long_term`]: facts, one document each
//! * [`skill`]: skills, one document each, and a log of their uses
//! * [`recall`]: what of all this a model is shown before a turn
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod blocking;
mod documents;
pub mod long_term;
mod options;
mod path;
pub mod recall;
mod residents;
pub mod skill;

pub use long_term::FileLongTermMemory;
pub use options::FileOptions;
pub use skill::FileSkillStore;
