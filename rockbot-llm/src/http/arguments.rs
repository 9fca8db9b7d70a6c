//! Arguments of tool calls, as every provider accepts them in the history of a conversation.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::json;

/// Returns arguments that are JSON, malformed text as a JSON string: some servers parse the
/// arguments of earlier calls and fail on malformed ones.
pub(crate) fn sendable_arguments(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<IgnoredAny>(arguments) {
        Ok(_) => Cow::Borrowed(arguments),
        Err(_) => Cow::Owned(malformed(arguments)),
    }
}

/// Returns arguments that are a JSON object, where a server wants an object; other text is quoted
/// inside of an object.
pub(crate) fn sendable_object(arguments: &str) -> Cow<'_, str> {
    let is_object = arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    match arguments.trim() {
        "" => Cow::Borrowed("{}"),
        _ if is_object => Cow::Borrowed(arguments),
        _ => Cow::Owned(malformed(arguments)),
    }
}

fn malformed(arguments: &str) -> String {
    json!({ "malformed": arguments }).to_string()
}
