//! Long-term memory in files: [`FileLongTermMemory`].
//!
//! An entry is one JSON document, `{category}/{id}.json`, or `{id}.json` when it has no category; entries of the
//! principal `local` lie in the folder itself, those of others in `@{principal}/`.
//!
//! People may add, change and remove these files. The id is the name of the file; `category`, when it is missing, the
//! folder; `createdAt`, when it is missing, the time of the file: `{"content": "likes tea"}` is an entry. An entry
//! stays in the file in which it was found until its category changes.

mod entry;
mod memory;

pub use memory::FileLongTermMemory;
