//! The building blocks that stores in files share. The format of a file and its crash safety live
//! here; the stores of [`file`](crate::file) only add their queries.
//!
//! * [`documents`]: a JSON file for each document, an index in memory, rescans for external edits
//! * [`timeline`]: dated entries in one JSON Lines file for each session
//! * [`folder`]: opens a folder and removes files that killed processes left in it
//! * [`path`]: the encoding of nested names as folders
//! * [`principal_cache`]: an LRU cache of per-principal state
//! * [`external_edit`]: how a file that a person edited is told from a file that this crate wrote
//! * [`blocking`]: runs file I/O on the runtime's blocking threads
//!
//! Memory on disk. Each store is a locked folder; other principals are in `@{principal}/`.
//! Documents may be edited by hand: the folder is read on all cores once, and then rescanned by
//! modification time and size when it is read (at most every 2 s and a twentieth of the time;
//! with more than 200 files in the background, so that no message waits for it), and the target
//! file is checked before every write (optimistic concurrency). Of copies with one id, the last
//! modified is current. An unreadable file is quarantined at the first scan, later only if it is
//! unchanged at the next rescan. The purge runs 5 minutes after start and every 6 hours; files
//! edited more than a day after the store's last write stay. Appended lines survive `kill -9`; a
//! purge replaces a file atomically, and only if nothing was appended meanwhile. Working memory
//! compacts its log into documents by group; lines state results, so replay is idempotent.

pub(crate) mod blocking;
pub(crate) mod documents;
pub(crate) mod external_edit;
pub(crate) mod folder;
pub(crate) mod path;
pub(crate) mod principal_cache;
pub(crate) mod timeline;
pub(crate) mod vector_bytes;
