//! The format of working memory on disk: the lines of the log, the entries of the documents, and
//! the names of the files.

use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::files::{IdTooLong, encode, name_of};
use rockbot_core::store::{StorePath, WorkingEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum size in bytes of a file or line that is read.
pub(super) const MAX_BYTES: u64 = 4 << 30;

/// The group of keys with a single segment.
const OTHER: &str = "_other";

/// An operation in the log. It states the result for its keys, so applying it twice is idempotent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Change {
    Put(Vec<Arc<WorkingEntry>>),
    Deleted(StorePath),
}

impl Change {
    /// Returns an estimate of its size as JSON in bytes.
    pub(super) fn expected_size(&self) -> usize {
        let size = |entry: &Arc<WorkingEntry>| entry.value.len() + entry.value.len() / 8 + 512;
        match self {
            Self::Put(entries) => entries.iter().map(size).sum(),
            Self::Deleted(key) => key.as_str().len() + 64,
        }
    }
}

/// An entry in a document, with its unknown members.
#[derive(Debug, Serialize)]
pub(super) struct StoredEntry<'a> {
    #[serde(flatten)]
    pub(super) entry: &'a WorkingEntry,
    #[serde(flatten)]
    pub(super) other: Option<&'a Map<String, Value>>,
}

/// The members of an entry that [`WorkingEntry`] has.
pub(super) const MEMBERS: [&str; 7] = [
    "key",
    "value",
    "storedAt",
    "expiresAt",
    "category",
    "tags",
    "provenance",
];

/// Returns the group of a key: its first segment.
pub(super) fn group(key: &StorePath) -> &str {
    let segments = key.as_str().split_once('/');
    segments.map_or(OTHER, |(group, _)| group)
}

/// Returns the file name of the document of a group.
pub(super) fn document_name(principal: &Principal, group: &str) -> Result<String, IdTooLong> {
    name_of(principal, &format!("{}.json", encode(group)?))
}

/// Returns the file name of the log of a principal.
pub(super) fn log_name(principal: &Principal) -> Result<String, IdTooLong> {
    name_of(principal, "changes.jsonl")
}
