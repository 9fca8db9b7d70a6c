//! A request to send: its body and headers, with the parts that model settings add.

use std::collections::BTreeMap;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rockbot_core::chat::{ChatError, ChatErrorKind, ModelSettingsError};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The members of a body that no setting may add: they decide the question and the reading of the
/// answer.
const RESERVED: [&str; 6] = ["model", "messages", "system", "tools", "stream", "input"];

/// The body of a request, and its headers in addition to the connection's. A clone is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
}

impl Outgoing {
    /// Creates a request with the extra headers of checked model settings. They override the
    /// connection's headers.
    pub(crate) fn new(body: impl Into<Bytes>, extra_headers: &BTreeMap<String, String>) -> Self {
        let headers = extra_headers.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        Self {
            body: body.into(),
            headers: headers.collect(),
        }
    }
}

impl From<Bytes> for Outgoing {
    fn from(body: Bytes) -> Self {
        Self {
            body,
            headers: HeaderMap::new(),
        }
    }
}

/// Adds the members of an extra body to `body`, a JSON object that is not empty.
///
/// # Errors
///
/// Returns an error if a member is reserved or stands in `body` already: servers take either the
/// first or the last of two, so it would be unknown which of them counts.
pub(crate) fn push_extra(body: &mut Vec<u8>, extra: &BTreeMap<String, Value>) -> Result<(), ChatError> {
    if extra.is_empty() {
        return Ok(());
    }
    let own: BTreeMap<String, IgnoredAny> = serde_json::from_slice(body).map_err(invalid_body)?;
    let is_taken = |name: &str| RESERVED.contains(&name) || own.contains_key(name);
    if let Some(name) = extra.keys().find(|name| is_taken(name)) {
        let message = format!(
            "the extra body of the model settings holds `{name}`, which the request sets itself; remove it there"
        );
        return Err(ChatError::new(ChatErrorKind::InvalidRequest, message));
    }
    body.pop();
    for (name, value) in extra {
        body.push(b',');
        serde_json::to_writer(&mut *body, name).map_err(invalid_body)?;
        body.push(b':');
        serde_json::to_writer(&mut *body, value).map_err(invalid_body)?;
    }
    body.push(b'}');
    Ok(())
}

/// Creates the error of a body that cannot be written.
pub(crate) fn invalid_body(error: serde_json::Error) -> ChatError {
    ChatError::new(ChatErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}

/// Creates the error of model settings that no model takes.
pub(super) fn invalid_settings(error: ModelSettingsError) -> ChatError {
    ChatError::new(ChatErrorKind::InvalidRequest, error.to_string()).with_source(error)
}
