//! The origin of one value, as a question to a person shows it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum length of a value in a [`ValueOrigin`], in bytes.
const MAX_SHOWN: usize = 200;

/// The place that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OriginKind {
    /// A message of the user names the value.
    User,
    /// The host's own data names the value.
    Host,
    /// An outside text alone names the value.
    Outside,
    /// No text names the value as it is: the model composed it.
    Composed,
    /// No message of the user asks for the action. The value is the name of the tool.
    Unasked,
    /// An equal call was made in this turn already. The value is the name of the tool.
    Repeated,
}

/// A value that decides about a call, with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ValueOrigin {
    /// The argument, such as `to` or `recipients[1].email`; empty if the origin is about the whole
    /// call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub argument: String,
    /// The value, cut after 200 bytes.
    pub value: String,
    /// The place that the value comes from.
    pub kind: OriginKind,
    /// The name of the outside text, if it comes from outside text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl ValueOrigin {
    pub(crate) fn new(argument: &str, value: &str, kind: OriginKind) -> Self {
        Self {
            argument: argument.to_owned(),
            value: cut(value, MAX_SHOWN),
            kind,
            source: None,
        }
    }

    pub(crate) fn from(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }

    /// Returns `true` if a person must be asked because of this value.
    pub fn is_doubtful(&self) -> bool {
        !matches!(self.kind, OriginKind::User | OriginKind::Host)
    }
}

/// One line for a person, such as "`to` (eve@example.org) comes from get_webpage".
impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            argument,
            value,
            kind,
            source,
        } = self;
        match kind {
            OriginKind::Unasked => return write!(f, "no message of the user asks for `{value}`"),
            OriginKind::Repeated => return write!(f, "`{value}` was called like this in this turn already"),
            _ => write!(f, "`{argument}` ({value}) ")?,
        }
        match (kind, source) {
            (OriginKind::User, _) => f.write_str("is the user's own"),
            (OriginKind::Host, _) => f.write_str("is in the agent's own data"),
            (OriginKind::Outside, Some(source)) => write!(f, "comes from {source}"),
            (OriginKind::Outside, None) => f.write_str("comes from outside text"),
            _ => f.write_str("is in no message of the user: the model composed it"),
        }
    }
}

/// Cuts a text after `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(max)])
}
