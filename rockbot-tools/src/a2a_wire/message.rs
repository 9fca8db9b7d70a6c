//! Messages and their parts.

use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use rockbot_core::support::one_line;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::A2aError;

/// Maximum number of parts of a message.
const MAX_PARTS: usize = rockbot_core::content::MAX_PARTS;

/// A message of the client or of the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) message_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<String>,
    pub(crate) role: Role,
    #[serde(deserialize_with = "bounded_list")]
    pub(crate) parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<MessageMetadata>,
}

/// The metadata of a message that have a meaning here.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct MessageMetadata {
    /// The skill of the card that the message is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    #[serde(rename = "ROLE_USER")]
    User,
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

/// A part: a text, bytes, the address of a file, or data.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
}

/// The content of a part.
#[derive(Debug)]
pub(crate) enum PartContent<'a> {
    Text(&'a str),
    Raw(Vec<u8>),
    Url(&'a str),
    /// JSON text.
    Data(&'a str),
}

impl Part {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    pub(crate) fn raw(bytes: &[u8]) -> Self {
        Self {
            raw: Some(STANDARD.encode(bytes)),
            ..Self::default()
        }
    }

    /// Returns the one content of the part.
    pub(crate) fn content(&self) -> Result<PartContent<'_>, A2aError> {
        match (&self.text, &self.raw, &self.url, &self.data) {
            (Some(text), None, None, None) => Ok(PartContent::Text(text)),
            (None, Some(raw), None, None) => Ok(PartContent::Raw(decoded(raw)?)),
            (None, None, Some(url), None) => Ok(PartContent::Url(url)),
            (None, None, None, Some(data)) => Ok(PartContent::Data(data.get())),
            _ => Err(A2aError::params(
                "each part of `message.parts` has exactly one of `text`, `raw`, `url`, `data`",
            )),
        }
    }
}

/// Returns the text that stands for a file by reference: neither this host nor the server of a
/// model goes to an address because another agent names it.
pub(crate) fn reference(url: &str, name: Option<&str>, kind: Option<&str>) -> String {
    let about: Vec<_> = [name, kind].into_iter().flatten().map(one_line).collect();
    format!("[file by reference: {} {}]", one_line(url), about.join(", "))
}

fn decoded(raw: &str) -> Result<Vec<u8>, A2aError> {
    let decoded = STANDARD.decode(raw).or_else(|_| URL_SAFE.decode(raw));
    decoded.map_err(|_| A2aError::params("the `raw` of a part is not Base64 with padding"))
}

/// Reads the items of a list until there are too many; the rest is skipped unread. `check` refuses
/// a message of too many parts. `null` is an empty list.
pub(crate) fn bounded_list<'de, D, P>(deserializer: D) -> Result<Vec<P>, D::Error>
where
    D: Deserializer<'de>,
    P: Deserialize<'de>,
{
    struct Items<P>(PhantomData<P>);

    impl<'de, P: Deserialize<'de>> Visitor<'de> for Items<P> {
        type Value = Vec<P>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut parts = Vec::new();
            while parts.len() <= MAX_PARTS {
                match list.next_element()? {
                    Some(part) => parts.push(part),
                    None => return Ok(parts),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(parts)
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }

    deserializer.deserialize_any(Items(PhantomData))
}

impl Message {
    /// Creates a message of the agent about a task.
    pub(crate) fn of_agent(id: String, context: &str, task: &str, text: impl Into<String>) -> Self {
        Self {
            message_id: id,
            context_id: Some(context.to_owned()),
            task_id: Some(task.to_owned()),
            role: Role::Agent,
            parts: vec![Part::text(text)],
            metadata: None,
        }
    }

    /// Checks the rules that the types do not express.
    pub(crate) fn check(&self) -> Result<(), A2aError> {
        if self.message_id.is_empty() {
            return Err(A2aError::params(
                "`message.messageId` is empty: give each message an id of its own",
            ));
        }
        if self.role != Role::User {
            return Err(A2aError::params(
                "`message.role` is `ROLE_USER` in a message to the agent",
            ));
        }
        if self.parts.is_empty() {
            return Err(A2aError::params("`message.parts` is empty: send at least one part"));
        }
        if self.parts.len() > MAX_PARTS {
            return Err(A2aError::params(format!(
                "`message.parts` has more than {MAX_PARTS} parts"
            )));
        }
        Ok(())
    }
}
