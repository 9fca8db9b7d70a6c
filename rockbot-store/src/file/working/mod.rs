//! Working memory in files: [`FileWorkingMemory`].
//!
//! A group of entries is a JSON array, `{first segment of the key}.json`, or `_other.json` for
//! keys of one segment; `changes.jsonl` beside the groups is the write-ahead log: a line for each
//! put or delete since. The files of the principal `local` are in the folder itself, the files of
//! other principals in `@{principal}/`.
//!
//! When the log has grown, and on a flush, it is compacted: the documents of changed groups are
//! written without expired entries, and the log is cut. A line states the value of a key, not a
//! difference, so replaying it twice is idempotent and a crash between the two steps is harmless.
//! External edits of these files are seen when the memory is opened.
//!
//! One log for all groups of working memory, so that entries that are stored together are kept
//! together across groups.

mod compaction;
mod format;
mod load;
mod state;
mod store;

pub use store::FileWorkingMemory;
