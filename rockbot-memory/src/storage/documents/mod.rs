//! Stores of JSON documents, one file each, that people may edit: what long-term memory and skills have in common.
//!
//! * [`Document`]: what is kept
//! * [`StoredDocument`]: a document as it stands in its file, with the members that others wrote
//! * [`Collection`]: the stored of one principal in memory, and their index
//! * [`DocumentStore`]: the folder; the only one that reads and writes files
//!
//! **Changes by others** are seen by their files' times and sizes. Before something is read, the files are scanned
//! over, unless that was done in the last 2 seconds, or is 20 times less ago than it took. Before a file is written,
//! it is scanned at in any case: what somebody changed is read first, and never overwritten unseen.
//!
//! **Copies**: of several files with the same id, the one that was changed last counts. The others stay where they are
//! until the document is deleted.
//!
//! **Damage**: a file that cannot be read is set aside as `….damaged`; one that was all right before only when it is
//! still the same at the next look, since somebody may be writing it.

mod collection;
mod document;
mod filtered_search;
mod memory_entry;
mod purge;
mod rescan;
mod skill;
mod store;
mod stored_document;

pub(crate) use collection::Collection;
#[cfg(feature = "sqlite")]
pub(crate) use document::{Document, Members};
#[cfg(feature = "sqlite")]
pub(crate) use filtered_search::search_filtered;
pub(crate) use store::DocumentStore;
