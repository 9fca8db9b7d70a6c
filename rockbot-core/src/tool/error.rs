//! The errors of tool calls.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::Effect;
use crate::BoxError;

/// Why a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ToolErrorCode {
    /// No tool has this name.
    ToolNotFound,
    /// The tool ran and failed.
    ExecutionFailed,
    /// The tool took too long, and calling it again does no harm.
    Timeout,
    /// The arguments do not fit the tool.
    InvalidArguments,
    /// The call needs an approval that it does not have.
    ApprovalRequired,
    /// Somebody refused the call.
    Denied,
    /// The work was no longer wanted.
    Cancelled,
    /// The call was interrupted or took too long; whether it took effect is not known, so it is not simply repeated.
    OutcomeUnknown,
}

impl ToolErrorCode {
    /// Every code.
    const ALL: [Self; 8] = [
        Self::ToolNotFound,
        Self::ExecutionFailed,
        Self::Timeout,
        Self::InvalidArguments,
        Self::ApprovalRequired,
        Self::Denied,
        Self::Cancelled,
        Self::OutcomeUnknown,
    ];

    /// The code of this name, also in another spelling, such as `tool_not_found`. What another program calls by a
    /// name that is not known here has at least failed: [`ToolErrorCode::ExecutionFailed`].
    pub fn named(name: &str) -> Self {
        let name = name.replace('_', "");
        let mut all = Self::ALL.into_iter();
        all.find(|code| code.name().eq_ignore_ascii_case(&name))
            .unwrap_or(Self::ExecutionFailed)
    }

    /// The code as it stands on the wire and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolNotFound => "ToolNotFound",
            Self::ExecutionFailed => "ExecutionFailed",
            Self::Timeout => "Timeout",
            Self::InvalidArguments => "InvalidArguments",
            Self::ApprovalRequired => "ApprovalRequired",
            Self::Denied => "Denied",
            Self::Cancelled => "Cancelled",
            Self::OutcomeUnknown => "OutcomeUnknown",
        }
    }

    /// Whether the same call may be made again and may succeed a little later. A call of a mutating tool that took too
    /// long is [`ToolErrorCode::OutcomeUnknown`] to the host, never a [`ToolErrorCode::Timeout`].
    pub fn is_retryable(self) -> bool {
        self == Self::Timeout
    }
}

impl<'de> Deserialize<'de> for ToolErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|name| Self::named(&name))
    }
}

/// A failed tool call.
#[derive(Debug)]
pub struct ToolError {
    code: ToolErrorCode,
    message: String,
    is_retryable: bool,
    source: Option<BoxError>,
}

impl ToolError {
    /// An error with `code`; `message` is what the model reads, so it says what to do next.
    pub fn new(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            is_retryable: code.is_retryable(),
            source: None,
        }
    }

    /// The tool ran and failed.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorCode::ExecutionFailed, message)
    }

    /// The arguments do not fit the tool.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorCode::InvalidArguments, message)
    }

    /// A call of a tool with `effect` took too long, as `what` says. Only one that does no harm twice may be tried
    /// again: of a mutating one the outcome is unknown.
    pub fn too_long(what: impl fmt::Display, effect: Effect) -> Self {
        match effect {
            Effect::Pure | Effect::Idempotent => {
                let message = format!("{what}; it may be tried again, perhaps with less to do");
                Self::new(ToolErrorCode::Timeout, message)
            }
            Effect::Mutating => Self::outcome_unknown(what),
        }
    }

    /// Nobody knows whether the call took effect, because of `what`.
    pub fn outcome_unknown(what: impl fmt::Display) -> Self {
        let message = format!("{what}; it may or may not have taken effect, so check before you try it again");
        Self::new(ToolErrorCode::OutcomeUnknown, message)
    }

    /// Saying whether the same call may succeed a little later. By default only a time-out may.
    #[must_use]
    pub fn with_retryable(mut self, is_retryable: bool) -> Self {
        self.is_retryable = is_retryable;
        self
    }

    /// Because of `source`. The model does not see it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why the call failed.
    pub fn code(&self) -> ToolErrorCode {
        self.code
    }

    /// What the model reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<BoxError> for ToolError {
    /// Finds the typed error inside a boxed one; anything else becomes [`ToolErrorCode::ExecutionFailed`].
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::execution_failed(error.to_string()).with_source(error),
        }
    }
}
