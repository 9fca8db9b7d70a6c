//! The conversation log in files: [`FileConversationLog`].
//!
//! `turns.jsonl` has an entry in each line, of all sessions, in the order in which things were said; `readers.json` has
//! the position of each reader. Those of the principal `local` lie in the folder itself, those of others in
//! `@{principal}/`.
//!
//! A position is the number of lines that were ever appended before it. When lines at the beginning are forgotten, the
//! first line of the new file, `{"start": …}`, says how many were. When somebody else empties or replaces the file,
//! what is in it then is new to every reader whose position it does not reach.

mod line_index;
mod log;
mod store;

pub use store::FileConversationLog;
