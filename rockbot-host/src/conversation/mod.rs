//! Conversation memory on disk: [`FileConversationMemory`].
//!
//! A session is two files. `{session}.json` is a JSON array of what was said, `{role, content, timestamp, turn}`, oldest
//! first; `{session}.jsonl` beside it has what came after, such an array in each line, one line for each append. Now and
//! then, at [`flush`](rockbot_core::store::ConversationMemory::flush) too, a session is folded: its window becomes the
//! new document, and the log begins again.
//!
//! * **Names** are session ids as [`files::encode`](rockbot_core::files::encode) writes them. Sessions of the principal
//!   `local` lie in the folder itself, those of others in `@{principal}/`. Documents under other names, in nested
//!   folders too, were written by other programs: their id is their path without `.json`. They are read where
//!   there is none of ours, stay as they are, and go away only when their session is cleared. They are looked for when
//!   the memory is opened.
//! * **Folding** notes `{"folded": digest of the new document}` in the log before the document is replaced. After a
//!   crash in between, the digest tells whether the lines before it are in the document already.
//! * **EntryVisitor of an entry that we do not know** are kept when a document is written again. A document without `turn`
//!   gets ids like `imported-0`, by position.
//! * **Damage**: a document that cannot be read as such an array is set aside as `{session}.json.damaged`, with a
//!   warning; lines that cannot be read are skipped, and the log is copied aside before it is shortened.

mod compaction;
mod compaction_thread;
mod entry;
mod folder;
mod layout;
mod memory;
mod open_logs;
mod options;
mod preload;
mod session;
mod session_cache;

pub use memory::FileConversationMemory;
pub use options::ConversationOptions;
