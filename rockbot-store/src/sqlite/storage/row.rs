//! Conversion between rows and JSON.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{QueryError, SqliteError};

/// Parses the JSON of a row. The error names the row.
pub(in crate::sqlite) fn parse<T: DeserializeOwned>(what: &'static str, id: &str, json: &str) -> Result<T, QueryError> {
    let read = serde_json::from_str(json).map_err(|cause| SqliteError::Row {
        what,
        id: id.to_owned(),
        cause: Arc::new(cause),
    });
    Ok(read?)
}

/// Parses a row of many. A row that cannot be parsed is skipped with a warning.
pub(in crate::sqlite) fn parse_or_skip<T: DeserializeOwned>(what: &'static str, id: &str, json: &str) -> Option<T> {
    let parsed = parse(what, id, json);
    parsed
        .inspect_err(|error| tracing::warn!(error = %error.0, "a row of the database cannot be parsed and is skipped"))
        .ok()
}

/// Serializes a value for a row.
pub(in crate::sqlite) fn to_json(value: &impl Serialize) -> Result<String, QueryError> {
    Ok(serde_json::to_string(value)?)
}

/// Converts a number to an SQLite integer, saturating at the maximum.
pub(in crate::sqlite) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
