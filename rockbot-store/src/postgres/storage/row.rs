//! Conversion between rows and values: JSON, numbers, and texts with any character.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::error::{PostgresError, QueryError};

/// Parses the JSON of a row. The error names the row.
pub(in crate::postgres) fn parse<T: DeserializeOwned>(
    what: &'static str,
    id: &str,
    json: &str,
) -> Result<T, QueryError> {
    let read = serde_json::from_str(json).map_err(|cause| PostgresError::Row {
        what,
        id: id.to_owned(),
        cause: Arc::new(cause),
    });
    Ok(read?)
}

/// Parses a row of many. A row that cannot be parsed is skipped with a warning.
pub(in crate::postgres) fn parse_or_skip<T: DeserializeOwned>(what: &'static str, id: &str, json: &str) -> Option<T> {
    let parsed = parse(what, id, json);
    parsed
        .inspect_err(|error| tracing::warn!(error = %error.0, "a row of the database cannot be parsed and is skipped"))
        .ok()
}

/// Converts a number to a `bigint`, saturating at the maximum.
pub(in crate::postgres) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns an id or a text as a column can hold it. PostgreSQL's texts have no `\0`, so that becomes
/// `\1\1`, and `\1` becomes `\1\2`: the order of ids stays.
pub(in crate::postgres) fn column(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', '\x01']) {
        true => text.replace('\x01', "\x01\x02").replace('\0', "\x01\x01").into(),
        false => text.into(),
    }
}

/// Returns the text that [`column`] was given.
pub(in crate::postgres) fn from_column(text: &str) -> String {
    text.replace("\x01\x01", "\0").replace("\x01\x02", "\x01")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_column_holds_every_text_and_keeps_the_order(a in "[\0\x01\x02a]{0,6}", b in "[\0\x01\x02a]{0,6}") {
            prop_assert!(!column(&a).contains('\0'));
            prop_assert_eq!(column(&a).cmp(&column(&b)), a.cmp(&b));
            prop_assert_eq!(from_column(&column(&a)), a);
        }
    }
}
