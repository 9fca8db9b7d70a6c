//! What is kept as one document.

use std::fmt;
use std::hash::Hash;
use std::time::{SystemTime, UNIX_EPOCH};

use rockbot_core::Timestamp;
use rockbot_core::files::IdTooLong;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Something that is kept as one JSON document, by key.
pub(crate) trait Document:
    Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    type Key: Clone + Ord + Hash + fmt::Debug + Send + Sync + 'static;

    /// What messages call it, such as `memory`.
    const WHAT: &'static str;

    /// The members that we know. All others are kept as they are.
    const MEMBERS: &'static [&'static str];

    fn key(&self) -> Self::Key;

    /// The name of its file, without the ending. No two keys share one.
    fn stem(&self) -> Result<String, IdTooLong>;

    /// Whether it may stay in the file of `before`, which has the same key.
    fn stays_with(&self, before: &Self) -> bool;

    /// What its file's name and time say: people may leave that out, and cannot write it wrongly.
    fn complete(members: &mut Map<String, Value>, stem: &str, modified: Timestamp);

    /// What searches look at; `None` when they should not find it.
    fn searched_text(&self) -> Option<String>;
}

/// A document, and members beside it that we do not know, as one JSON object.
#[derive(Serialize)]
pub(crate) struct Members<'a, D> {
    #[serde(flatten)]
    pub(crate) document: &'a D,
    #[serde(flatten)]
    pub(crate) other: &'a Map<String, Value>,
}

/// A moment as it stands in documents.
pub(crate) fn moment(at: Timestamp) -> Value {
    #[derive(Serialize)]
    struct Moment(#[serde(with = "rockbot_core::rfc3339")] Timestamp);

    serde_json::to_value(Moment(at)).expect("a moment is text")
}

/// When a file was changed; the beginning of time where the system does not know.
pub(super) fn timestamp(modified: Option<SystemTime>) -> Timestamp {
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let millis = since.map(|since| since.as_millis()).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
