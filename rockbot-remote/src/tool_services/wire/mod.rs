//! The bodies of requests and replies.
//!
//! A request is `{"user", "config", "arguments"}`, the last two as JSON text. A reply is
//! `{"error", "response", "end_of_stream"}`. Both are read leniently, as TrustGraph reads them:
//! unknown members are ignored and missing ones have their default. They find each other by the
//! header `id`.

use serde::Serialize;
use serde_json::{Map, Value};

/// The header that a request and its replies share.
pub(super) const ID: &str = "id";

/// The header of replies to a request that was delivered again: the number of that delivery.
/// Replies with a higher number replace the earlier replies.
pub(super) const ATTEMPT: &str = "attempt";

/// The `id` in replies to requests without one.
pub(super) const UNKNOWN_ID: &str = "unknown";

/// The `type` of the errors of a service.
pub(super) const SERVICE_ERROR: &str = "tool-service-error";

/// The `type` of the error of a service that was too busy for too long.
pub(super) const TOO_MANY_REQUESTS: &str = "too-many-requests";

/// The message type of requests on buses that carry one.
pub(super) const REQUEST_TYPE: &str = "ToolServiceRequest";

/// The message type of replies.
pub(super) const RESPONSE_TYPE: &str = "ToolServiceResponse";

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct RequestBody<'a> {
    /// The user on whose behalf the call is made.
    pub(super) user: &'a str,
    /// The config values, as JSON text.
    pub(super) config: &'a str,
    /// The arguments, as JSON text.
    pub(super) arguments: &'a str,
}

/// The body of a reply, with every member, in TrustGraph's order.
#[derive(Debug, Serialize)]
pub(super) struct ReplyBody<'a> {
    error: Option<ErrorBody<'a>>,
    response: &'a str,
    end_of_stream: bool,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    r#type: &'a str,
    message: &'a str,
}

impl<'a> ReplyBody<'a> {
    /// Creates the last or only part of a result.
    pub(super) fn last(response: &'a str) -> Self {
        Self {
            error: None,
            response,
            end_of_stream: true,
        }
    }

    /// Creates a part of a result that more parts follow.
    pub(super) fn part(response: &'a str) -> Self {
        Self {
            end_of_stream: false,
            ..Self::last(response)
        }
    }

    /// Creates the reply to a request that failed.
    pub(super) fn error(r#type: &'a str, message: &'a str) -> Self {
        Self {
            error: Some(ErrorBody { r#type, message }),
            ..Self::last("")
        }
    }

    /// Returns the reply as JSON text.
    pub(super) fn to_json(&self) -> Vec<u8> {
        // Texts and flags can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A reply as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A part of the result, and whether it is the last.
    Part {
        /// The text; JSON text if the service sent another value.
        text: String,
        /// `false` only if the service says that more comes.
        is_last: bool,
    },
    /// The service failed.
    Failed {
        /// The kind of error; may be empty.
        kind: String,
        /// The description; may be empty.
        message: String,
    },
}

impl Reply {
    /// Parses the body of a reply. Returns `None` if it is no JSON object.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body: Map<String, Value> = serde_json::from_slice(body).ok()?;
        if let Some((kind, message)) = body.remove("error").and_then(failure) {
            return Some(Self::Failed { kind, message });
        }
        Some(Self::Part {
            text: body
                .remove("response")
                .map_or_else(String::new, |value| text_of(&value)),
            // A service that does not stream may leave the member out.
            is_last: body.get("end_of_stream") != Some(&Value::Bool(false)),
        })
    }
}

/// Returns type and message of an error, or `None` if the member says that there is none.
fn failure(error: Value) -> Option<(String, String)> {
    let text = |value: Option<&Value>| value.filter(|value| !value.is_null()).map_or_else(String::new, text_of);
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) => (!message.is_empty()).then(|| (String::new(), message)),
        Value::Object(members) => Some((text(members.get("type")), text(members.get("message")))),
        other => Some((String::new(), other.to_string())),
    }
}

/// Returns a text as it is, and any other value as JSON text.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A request as a service reads it.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// The user; empty if the caller names none.
    pub(super) user: String,
    /// The config values.
    pub(super) config: Value,
    /// The arguments.
    pub(super) arguments: Value,
}

impl Request {
    /// Parses the body of a request. The error states the problem, for the caller.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| format!("the request is not JSON: {error}"))?;
        let Value::Object(mut members) = body else {
            return Err("the request is no JSON object".to_owned());
        };
        let user = match members.remove("user") {
            Some(Value::String(user)) => user,
            _ => String::new(),
        };
        Ok(Self {
            user,
            config: object(&mut members, "config")?,
            arguments: object(&mut members, "arguments")?,
        })
    }
}

/// Returns the object in a member: `{}` if it is missing, `null` or empty.
fn object(members: &mut Map<String, Value>, name: &str) -> Result<Value, String> {
    let value = match members.remove(name) {
        None | Some(Value::Null) => return Ok(Value::Object(Map::new())),
        Some(Value::String(text)) if text.is_empty() => return Ok(Value::Object(Map::new())),
        Some(Value::String(text)) => {
            serde_json::from_str(&text).map_err(|error| format!("`{name}` is not JSON: {error}"))?
        }
        Some(_) => return Err(format!("`{name}` must be the JSON text of an object, in quotes")),
    };
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(format!("`{name}` must be the JSON text of an object")),
    }
}

#[cfg(test)]
mod tests;
