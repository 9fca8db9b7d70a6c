//! The reply to a request that has no answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Message;

/// A reply that reports why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErrorReply {
    /// The kind of error, for programs.
    pub code: String,
    /// A description of the error, for people.
    pub message: String,
    /// `true` if the same request may succeed a little later. Default `false`.
    #[serde(default)]
    pub is_retryable: bool,
}

impl ErrorReply {
    /// Creates a reply to a request that must not be repeated.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            is_retryable: false,
        }
    }

    /// Sets whether the same request may succeed a little later. Default `false`.
    #[must_use]
    pub fn with_retryable(mut self, is_retryable: bool) -> Self {
        self.is_retryable = is_retryable;
        self
    }
}

impl Message for ErrorReply {
    const TYPE: &'static str = "rockbot.ErrorReply";
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
