//! The trait of types that are stored as one JSON document each.

use std::fmt;
use std::hash::Hash;
use std::time::{SystemTime, UNIX_EPOCH};

use rockbot_core::Timestamp;
use rockbot_core::files::IdTooLong;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Maximum size of a document in bytes, read or written.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// A type that is stored as one JSON document per key, in a file or in a row of a table.
pub(crate) trait Document:
    Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    type Key: Clone + Ord + Hash + fmt::Debug + Send + Sync + 'static;

    /// The noun for it in errors and logs, such as `memory`; also the name of its SQLite table.
    const WHAT: &'static str;

    /// The members of the JSON object that the type has. All other members are preserved unchanged.
    const MEMBERS: &'static [&'static str];

    /// Returns the key, unique within a principal.
    fn key(&self) -> Self::Key;

    /// Returns the path of its file below the principal's folder, without the extension. Injective
    /// over keys.
    fn stem(&self) -> Result<String, IdTooLong>;

    /// Returns `true` if the document may stay in the file of `before`, its previous version.
    fn stays_with(&self, before: &Self) -> bool;

    /// Fills in the members that follow from the name and the time of the file. A person who writes
    /// such a file by hand may leave them out, and cannot contradict the file's name.
    fn complete(members: &mut Map<String, Value>, stem: &str, modified: Timestamp);

    /// Returns the text that the word index gets, or `None` if searches must not find the document.
    fn searched_text(&self) -> Option<String>;
}

/// A document and the preserved unknown members, serialized as one JSON object.
#[derive(Serialize)]
pub(crate) struct Members<'a, D> {
    #[serde(flatten)]
    pub(crate) document: &'a D,
    #[serde(flatten)]
    pub(crate) other: &'a Map<String, Value>,
}

/// Converts a timestamp to the JSON that documents have.
pub(crate) fn moment(at: Timestamp) -> Value {
    #[derive(Serialize)]
    struct Moment(#[serde(with = "rockbot_core::rfc3339")] Timestamp);

    serde_json::to_value(Moment(at)).expect("a moment is text")
}

/// Converts the modification time of a file; the epoch where the file system has none.
pub(super) fn timestamp(modified: Option<SystemTime>) -> Timestamp {
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let millis = since.map(|since| since.as_millis()).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
