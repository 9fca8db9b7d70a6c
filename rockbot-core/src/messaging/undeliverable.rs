//! What is wrong with a body, said without quoting it.

use serde_json::error::Category;

/// What is wrong with JSON, and where. What serde says quotes the values that it read; this goes into reasons, and
/// reasons are logged.
pub(super) fn undeliverable(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let what = match error.classify() {
        Category::Io => "it cannot be read".to_owned(),
        Category::Syntax => "it is not JSON".to_owned(),
        Category::Eof => "it ends too early".to_owned(),
        Category::Data => missing_field(error).unwrap_or_else(|| "a value is of another shape".to_owned()),
    };
    format!("{what}, at line {line} column {column}")
}

/// The name of a missing member stands in the receiver's code, so it can be told.
fn missing_field(error: &serde_json::Error) -> Option<String> {
    let said = error.to_string();
    let (name, _) = said.strip_prefix("missing field `")?.split_once('`')?;
    Some(format!("missing field `{name}`"))
}
