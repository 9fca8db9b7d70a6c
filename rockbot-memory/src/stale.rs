//! Marks of memories that may be out of date: a memory that they rest on is no longer true.
//!
//! The mark stands in the metadata of the entry, so every store keeps it. It holds until the memory
//! is learned again or changed.

use rockbot_core::store::MemoryEntry;
use rockbot_core::{MemoryId, Timestamp};

/// Name of the time of the mark, in milliseconds.
const SINCE: &str = "staleSince";

/// Name of the id of the memory that is no longer true.
const BY: &str = "staleBy";

/// The words of a marked memory for a model.
pub(crate) const WORDS: &str = "may be out of date: a fact that it rests on has changed since";

/// Returns the entry with the mark.
pub(crate) fn marked(entry: &MemoryEntry, by: &MemoryId, now: Timestamp) -> MemoryEntry {
    let mut marked = entry.clone();
    marked.metadata.insert(SINCE.to_owned(), now.as_millis().to_string());
    marked.metadata.insert(BY.to_owned(), by.to_string());
    marked
}

/// Returns `true` if the entry has a mark, and was not learned again since.
pub(crate) fn is_stale(entry: &MemoryEntry) -> bool {
    let since = entry.metadata.get(SINCE).and_then(|since| since.parse().ok());
    since.is_some_and(|since| entry.last_seen() <= Timestamp::from_millis(since))
}
