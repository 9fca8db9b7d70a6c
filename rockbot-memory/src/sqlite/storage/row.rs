//! JSON in rows.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::SqliteError;

/// Reads a row. It says which one it was when it cannot.
pub(in crate::sqlite) fn parse<T: DeserializeOwned>(
    what: &'static str,
    id: &str,
    json: &str,
) -> Result<T, SqliteError> {
    serde_json::from_str(json).map_err(|source| SqliteError::Row {
        what,
        id: id.to_owned(),
        source: Arc::new(source),
    })
}

/// Reads one of many rows, or leaves it out with a warning.
pub(in crate::sqlite) fn parse_or_skip<T: DeserializeOwned>(what: &'static str, id: &str, json: &str) -> Option<T> {
    let parsed = parse(what, id, json);
    parsed
        .inspect_err(|error| tracing::warn!(%error, "a row of the database is left out"))
        .ok()
}

pub(in crate::sqlite) fn to_json(value: &impl Serialize) -> Result<String, SqliteError> {
    Ok(serde_json::to_string(value)?)
}

/// A number as SQLite has it; one that is too large is the largest.
pub(in crate::sqlite) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
