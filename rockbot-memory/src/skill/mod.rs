//! Skills in files: [`FileSkillStore`].
//!
//! A skill is one JSON document, `{name}.json`, whose name may be nested; skills of the principal `local` lie in the folder
//! itself, those of others in `@{principal}/`. People may add, change and remove these files. The name of the skill is that of the
//! file; `createdAt`, when it is missing, is the time of the file.
//!
//! Uses of skills are lines in `{session}.jsonl`, in a folder of their own.

mod document;
mod store;

pub use store::FileSkillStore;
