//! Descriptions of JSON errors that do not quote the message.

use serde_json::error::Category;

/// Describes a JSON error: the kind of error and its position.
///
/// The message of `serde_json` quotes the values that it read. This description goes into dead
/// letters and logs, where the content of a message must not appear.
pub(super) fn describe_json_error(error: &serde_json::Error) -> String {
    let line = error.line();
    let column = error.column();
    let what = match error.classify() {
        Category::Io => "it cannot be read".to_owned(),
        Category::Syntax => "it is not JSON".to_owned(),
        Category::Eof => "it ends too early".to_owned(),
        Category::Data => missing_field(error).unwrap_or_else(|| "a value is of another shape".to_owned()),
    };
    format!("{what}, at line {line} column {column}")
}

/// Returns the part of the error that names a missing field. The name comes from the receiver's
/// own type, not from the message, so it may be shown.
fn missing_field(error: &serde_json::Error) -> Option<String> {
    let message = error.to_string();
    let (name, _) = message.strip_prefix("missing field `")?.split_once('`')?;
    Some(format!("missing field `{name}`"))
}
