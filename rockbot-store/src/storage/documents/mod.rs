//! JSON documents, one file each, that people may edit: the common part of long-term memory and
//! skills.
//!
//! * [`Document`]: the trait of a type that is stored as a document
//! * [`StoredDocument`]: a document as its file has it, with the members that other programs wrote
//! * [`Collection`]: the documents of one principal in memory, and their word index
//! * [`DocumentStore`]: the folder; the only part that reads and writes files
//!
//! **External edits** are detected by the modification time and size of a file. A read begins a
//! rescan of the folder, unless the last rescan was less than 2 seconds ago, or less than 20
//! times its own duration ago. It waits for a rescan of up to 200 files; a larger folder is
//! rescanned in the background, and the next read has its edits. The first scan reads all files,
//! on several threads. Before a write the file at the target path is checked in any case: an edit
//! is read first, and never overwritten unseen.
//!
//! **Copies**: of several files with the same id, the file that was modified last is current. The
//! other files stay in place until the document is deleted.
//!
//! **Damage**: a file that cannot be read is quarantined as `….damaged`. A file that was valid
//! before is quarantined only if it is unchanged at the next rescan, because another program may
//! still be writing it.

mod collection;
mod document;
mod filtered_search;
mod first_scan;
mod freshness;
mod memory_entry;
mod purge;
mod rescan;
mod skill;
mod store;
mod stored_document;

pub(crate) use collection::Collection;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use document::{Document, MAX_BYTES, Members};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use filtered_search::search_filtered;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use memory_entry::wording;
pub(crate) use store::DocumentStore;
