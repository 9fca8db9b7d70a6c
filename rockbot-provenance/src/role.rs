//! The role of an argument: does its value decide about the call, or is it composed text?

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The role of an argument in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArgumentRole {
    /// The value decides where the call goes or what it changes: a recipient, an address, an
    /// amount, an id, a path, a command. It must be the user's own.
    Destination,
    /// The value is text that the model composes, such as the body of a mail.
    Content,
}

/// The member of a property in a schema that declares its role: `destination` or `content`.
const ANNOTATION: &str = "x-argument-role";

/// Names of arguments with composed text, as whole words of the argument's name.
const CONTENT: [&str; 32] = [
    "body",
    "text",
    "content",
    "contents",
    "message",
    "msg",
    "subject",
    "title",
    "description",
    "note",
    "notes",
    "comment",
    "comments",
    "summary",
    "reason",
    "caption",
    "details",
    "html",
    "markdown",
    "memo",
    "remark",
    "remarks",
    "review",
    "feedback",
    "explanation",
    "headline",
    "signature",
    "answer",
    "reply",
    "purpose",
    "instruction",
    "instructions",
];

/// Words of argument names whose value is an address that something is sent to.
const ADDRESS: [&str; 14] = [
    "url", "uri", "urls", "uris", "link", "href", "endpoint", "webhook", "host", "hostname", "domain", "website",
    "server", "address",
];

/// Words of argument names whose value names a receiver. A record that an attacker wrote must not
/// name one.
const RECEIVERS: [&str; 22] = [
    "to",
    "cc",
    "bcc",
    "recipient",
    "recipients",
    "receiver",
    "user",
    "users",
    "username",
    "member",
    "members",
    "participant",
    "participants",
    "attendee",
    "attendees",
    "invitee",
    "channel",
    "account",
    "iban",
    "handle",
    "email",
    "phone",
];

/// Words of argument names whose value names a record.
const IDENTIFIER: [&str; 8] = ["id", "ids", "number", "no", "nr", "ref", "reference", "key"];

/// Formats of JSON Schema whose value is an address.
const ADDRESS_FORMATS: [&str; 10] = [
    "email",
    "idn-email",
    "uri",
    "url",
    "iri",
    "uri-reference",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
];

/// An argument, or a member of one, as the finder sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value that decides.
    Deciding,
    /// A value that decides and that is an address.
    Address,
    /// An opaque id of a record.
    Identifier,
    /// Composed text.
    Content,
    /// A value out of a fixed list, which chooses and addresses nothing.
    Choice,
}

/// Returns the kind of the argument `name` by its declaration, its schema and its name.
pub(crate) fn kind_of(name: &str, schema: Option<&Value>, declared: Option<ArgumentRole>) -> Kind {
    let member = |key: &str| schema.and_then(|schema| schema.get(key));
    let text = |key: &str| member(key).and_then(Value::as_str);
    let annotated = match text(ANNOTATION) {
        Some("destination") => Some(ArgumentRole::Destination),
        Some("content") => Some(ArgumentRole::Content),
        _ => None,
    };
    let words = words_of(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_address = text("format").is_some_and(|format| ADDRESS_FORMATS.contains(&format)) || has(&ADDRESS);
    match declared.or(annotated) {
        Some(ArgumentRole::Content) => return Kind::Content,
        Some(ArgumentRole::Destination) if is_address => return Kind::Address,
        Some(ArgumentRole::Destination) if has(&IDENTIFIER) => return Kind::Identifier,
        Some(ArgumentRole::Destination) => return Kind::Deciding,
        None => {}
    }
    if member("enum").is_some() || member("const").is_some() || text("type") == Some("boolean") {
        Kind::Choice
    } else if is_address {
        Kind::Address
    } else if has(&IDENTIFIER) {
        Kind::Identifier
    } else if has(&CONTENT) {
        Kind::Content
    } else {
        Kind::Deciding
    }
}

/// Returns `true` if a tool with arguments of this JSON `schema` takes an address: of the web, of
/// mail, of a host.
pub fn takes_address(schema: &Value, roles: &[(String, ArgumentRole)]) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return false;
    };
    properties.iter().any(|(name, schema)| {
        let declared = roles
            .iter()
            .find(|(argument, _)| argument == name)
            .map(|(_, role)| *role);
        kind_of(name, Some(schema), declared) == Kind::Address
    })
}

/// Returns `true` if the argument names a receiver.
pub(crate) fn is_receiver(name: &str) -> bool {
    words_of(name).iter().any(|word| RECEIVERS.contains(&word.as_str()))
}

/// Returns the words of a name in snake, kebab or camel case, in lower case.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        let starts = char.is_uppercase() && was_lower;
        was_lower = char.is_lowercase() || char.is_ascii_digit();
        if starts || !char.is_alphanumeric() {
            words.push(String::new());
        }
        if char.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(char.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_schemas_tell_the_kind() {
        let kind = |name: &str, schema: Value| kind_of(name, Some(&schema), None);
        for (name, schema, expected) in [
            ("to", json!({"type": "string"}), Kind::Deciding),
            ("callbackUrl", json!({}), Kind::Address),
            ("contact", json!({"format": "email"}), Kind::Address),
            ("event_id", json!({"type": "string"}), Kind::Identifier),
            ("mail_body", json!({"type": "string"}), Kind::Content),
            ("content_id", json!({"type": "string"}), Kind::Identifier),
            ("state", json!({"enum": ["on", "off"]}), Kind::Choice),
            ("force", json!({"type": "boolean"}), Kind::Choice),
            ("note", json!({"x-argument-role": "destination"}), Kind::Deciding),
        ] {
            assert_eq!(kind(name, schema.clone()), expected, "{name} {schema}");
        }
        assert_eq!(kind_of("to", None, Some(ArgumentRole::Content)), Kind::Content);
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(
            words_of("sendHTTPRequest_to-all2"),
            ["send", "httprequest", "to", "all2"]
        );
        assert!(words_of("__").is_empty());
    }
}
