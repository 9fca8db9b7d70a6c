//! Working memory in files: [`FileWorkingMemory`].
//!
//! A group of entries is a JSON array, `{first segment of the key}.json`, or `_other.json` for keys of one segment;
//! `changes.jsonl` beside the groups has what was put and deleted since, a line for each operation. Those of the
//! principal `local` lie in the folder itself, those of others in `@{principal}/`.
//!
//! Now and then, and when it is flushed, the memory is folded: the groups that changed are written anew, without what
//! has expired, and the log begins again. The lines say what stands under a key, not how it changed, so a crash in
//! between only means that some are read once more. Changes that people make in these files are seen when the memory is
//! opened.

mod compaction;
mod format;
mod load;
mod state;
mod store;

pub use store::FileWorkingMemory;
