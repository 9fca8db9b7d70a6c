//! Conversations in files: [`FileConversationMemory`].
//!
//! A session is two files: a document and its log. `{session}.json` is a JSON array of messages,
//! `{role, content, timestamp, turn}`, oldest first; `{session}.jsonl` beside it has the later
//! messages, one such array per append. After 4 MiB of growth, and at
//! [`flush`](rockbot_core::store::ConversationMemory::flush), the log is compacted into its
//! document: the window of the session becomes the new document, and the log begins again.
//!
//! * **Names** are session ids as [`files::encode`](rockbot_core::files::encode) writes them.
//!   Sessions of the principal `local` lie in the folder itself, the sessions of other principals
//!   in `@{principal}/`. Documents under other names, in nested folders too, are foreign: another
//!   program wrote them, and their id is their path without `.json`. A foreign document is read
//!   if the session has no document of its own, is never changed, and is removed only when its
//!   session is cleared. Foreign documents are listed once, when the memory is opened.
//! * **Log compaction** appends a marker `{"folded": digest of the new document}` to the log
//!   before the document is replaced. After a crash in between, the digest tells whether the
//!   document already has the lines before the marker.
//! * **Unknown members of an entry** are kept when a document is rewritten. Entries without
//!   `turn` get ids by their position, like `imported-0`.
//! * **Damage**: a document that cannot be parsed is quarantined as `{session}.json.damaged`,
//!   with a warning. Unreadable lines of a log are skipped, and the log is copied to quarantine
//!   before it is shortened. Both are counted.
//!
//! The documents of the original RockBot open as they are, are never changed, and are removed
//! when their session is cleared. Open sessions are in an LRU cache.

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
