//! What stands in the files.

use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::files::{IdTooLong, encode, name_of};
use rockbot_core::store::{StorePath, WorkingEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest file or line that is read, in bytes.
pub(super) const MAX_BYTES: u64 = 4 << 30;

/// The group of keys without a slash.
const OTHER: &str = "_other";

/// One operation in the log. It says what stands under a key afterwards.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Change {
    Put(Vec<Arc<WorkingEntry>>),
    Deleted(StorePath),
}

impl Change {
    /// About how many bytes it has as JSON.
    pub(super) fn expected_size(&self) -> usize {
        let size = |entry: &Arc<WorkingEntry>| entry.value.len() + entry.value.len() / 8 + 512;
        match self {
            Self::Put(entries) => entries.iter().map(size).sum(),
            Self::Deleted(key) => key.as_str().len() + 64,
        }
    }
}

/// An entry in a document, with the members that another program wrote.
#[derive(Debug, Serialize)]
pub(super) struct StoredEntry<'a> {
    #[serde(flatten)]
    pub(super) entry: &'a WorkingEntry,
    #[serde(flatten)]
    pub(super) other: Option<&'a Map<String, Value>>,
}

/// The members of an entry that we know.
pub(super) const MEMBERS: [&str; 7] = [
    "key",
    "value",
    "storedAt",
    "expiresAt",
    "category",
    "tags",
    "provenance",
];

/// The group of a key.
pub(super) fn group(key: &StorePath) -> &str {
    let segments = key.as_str().split_once('/');
    segments.map_or(OTHER, |(group, _)| group)
}

/// The document of a group.
pub(super) fn document(principal: &Principal, group: &str) -> Result<String, IdTooLong> {
    name_of(principal, &format!("{}.json", encode(group)?))
}

/// The log of a principal.
pub(super) fn log(principal: &Principal) -> Result<String, IdTooLong> {
    name_of(principal, "changes.jsonl")
}
