//! What a setting holds.

use std::fmt;

use secrecy::ExposeSecret;

use crate::Secret;

/// What a setting holds. Its text may be a key: it is shown nowhere.
#[derive(Clone)]
#[non_exhaustive]
pub enum Value {
    /// A text; the environment knows nothing else.
    Text(Secret),
    /// A number, as it is written.
    Number(String),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<Self>),
    /// Names with further values, which stand under their own names.
    Section,
    /// What is no text in UTF-8.
    Bytes,
}

impl Value {
    /// The text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.expose_secret()),
            _ => None,
        }
    }

    /// The text, or the number as it is written: the environment writes numbers as texts.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Self::Number(number) => Some(number),
            _ => self.as_text(),
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Section => "a section",
            Self::Bytes => "bytes that are no UTF-8",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}
