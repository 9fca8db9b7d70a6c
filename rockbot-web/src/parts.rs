//! Parts of messages in the forms of other protocols.

use rockbot_core::content::{Content, ContentPart};
use serde_json::{Value, json};

use crate::error::WebError;

/// Returns an image or a file of bytes in base64. `kind` is `image` or `file`.
pub(crate) fn of_bytes(
    kind: &str,
    media_type: &str,
    data: &str,
    name: Option<String>,
) -> Result<ContentPart, WebError> {
    let mut part = json!({"type": kind, "mediaType": media_type, "data": data});
    if let Some(name) = name {
        part["name"] = Value::from(name);
    }
    // The content's own form on the wire has the bounds and the decoder.
    let content: Content =
        serde_json::from_value(json!([part])).map_err(|error| WebError::invalid(error.to_string()))?;
    Ok(content.parts()[0].clone())
}

/// Checks that a message says something.
pub(crate) fn check_said(content: &Content) -> Result<(), WebError> {
    if content.media().next().is_none() && content.text().trim().is_empty() {
        Err(WebError::invalid("the message says nothing: its content is empty"))
    } else {
        Ok(())
    }
}
