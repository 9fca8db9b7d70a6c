//! The conversation log in files: [`FileConversationLog`].
//!
//! `turns.jsonl` has an entry in each line, of all sessions, in append order; `readers.json` has
//! the committed offset of each reader. The files of the principal `local` are in the folder
//! itself, the files of other principals in `@{principal}/`.
//!
//! An offset is the number of lines that were ever appended before it. When lines at the
//! beginning are dropped, the first line of the new file, `{"start": …}`, has their number, so
//! offsets stay valid. If another program empties or replaces the file, its lines are new to
//! every reader whose offset lies beyond the end.

mod line_index;
mod log;
mod store;

pub use store::FileConversationLog;
