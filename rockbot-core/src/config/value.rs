//! The value of a setting.

use std::fmt;

use secrecy::ExposeSecret;

use crate::Secret;

/// The value of a setting. Its text may be a key, so `Debug` shows the kind only.
#[derive(Clone)]
#[non_exhaustive]
pub enum Value {
    /// A text. Environment variables are always texts.
    Text(Secret),
    /// A number, as it is written.
    Number(String),
    /// A boolean.
    Flag(bool),
    /// A list.
    List(Vec<Self>),
    /// A section; its settings are separate, under routes of their own.
    Section,
    /// Bytes that are not UTF-8.
    Bytes,
}

impl Value {
    /// Returns the text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.expose_secret()),
            _ => None,
        }
    }

    /// Returns the number as it is written, or the text: the environment writes numbers as texts.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Self::Number(number) => Some(number),
            _ => self.as_text(),
        }
    }

    /// Returns `true` if settings may be below this value. An empty list has no settings, but may
    /// be a list of sections.
    pub(super) fn is_section(&self) -> bool {
        match self {
            Self::Section => true,
            Self::List(values) => values.is_empty(),
            _ => false,
        }
    }

    /// Returns the kind of the value, for messages.
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
