//! What can go wrong with a model call, by kind.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::BoxError;

/// A model call that failed.
///
/// Callers decide by [`ChatError::kind`]; the message is for people and says what to do. It never holds a key.
#[derive(Debug)]
pub struct ChatError {
    kind: ChatErrorKind,
    message: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    retry_advice: Option<bool>,
    overflow: Option<Overflow>,
    source: Option<BoxError>,
}

/// What a provider told about a request that was larger than its model's context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overflow {
    /// How many tokens the window has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How many tokens the request had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// Why a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// Too many requests or tokens for the moment.
    RateLimited,
    /// The server has too much to do, or broke.
    Overloaded,
    /// The request is larger than the model's context window.
    ContextOverflow,
    /// The provider's content filter refused the request or the answer.
    ContentFiltered,
    /// The key is missing, wrong, or lacks the permission.
    Auth,
    /// The account has no credit left.
    QuotaExceeded,
    /// No complete answer within the time limit.
    TimedOut,
    /// The answer broke off before it was complete.
    CutStream,
    /// The server cannot be reached.
    Unreachable,
    /// The server does not know the model, or the endpoint is not a model server.
    NotFound,
    /// The server refused the request for another reason.
    InvalidRequest,
    /// The server's answer cannot be understood.
    InvalidResponse,
    /// This program has too many model calls running and waiting; the model was not asked.
    Saturated,
    /// The caller no longer wants the answer.
    Cancelled,
    /// The client is not set up.
    NotConfigured,
    /// Anything else, such as a failing layer.
    Other,
}

impl ChatErrorKind {
    /// The kind in journals, metrics and traces, such as `rate_limited`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow => "context_overflow",
            Self::ContentFiltered => "content_filtered",
            Self::Auth => "auth",
            Self::QuotaExceeded => "quota_exceeded",
            Self::TimedOut => "timed_out",
            Self::CutStream => "cut_stream",
            Self::Unreachable => "unreachable",
            Self::NotFound => "not_found",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidResponse => "invalid_response",
            Self::Saturated => "saturated",
            Self::Cancelled => "cancelled",
            Self::NotConfigured => "not_configured",
            Self::Other => "other",
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn retry_helps(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::CutStream
                | Self::TimedOut
                | Self::Unreachable
                | Self::InvalidResponse
        )
    }

    /// Whether the same request may succeed with another model.
    pub fn other_model_helps(self) -> bool {
        self.retry_helps()
            || matches!(
                self,
                Self::QuotaExceeded | Self::Auth | Self::NotFound | Self::ContentFiltered
            )
    }

    /// Whether a shorter request may succeed.
    pub fn smaller_context_helps(self) -> bool {
        matches!(self, Self::ContextOverflow)
    }
}

impl ChatError {
    /// An error of `kind`; `message` names the thing and says what to do next.
    pub fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            retry_advice: None,
            overflow: None,
            source: None,
        }
    }

    /// With the HTTP status that the server answered.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// With the time after which the server asked to try again.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Whether another attempt helps, when that is known better than by the kind.
    #[must_use]
    pub fn with_retry_advice(mut self, helps: bool) -> Self {
        self.retry_advice = Some(helps);
        self
    }

    /// With what the provider told about the context window.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Because of `source`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why the call failed.
    pub fn kind(&self) -> ChatErrorKind {
        self.kind
    }

    /// What happened, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The HTTP status that the server answered, if it answered.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether the same request may succeed a little later: what is known of this failure, else of its kind.
    pub fn retry_helps(&self) -> bool {
        self.retry_advice.unwrap_or_else(|| self.kind.retry_helps())
    }

    /// What the provider told about the context window, if it told anything.
    pub fn overflow(&self) -> Option<Overflow> {
        self.overflow
    }

    /// When the server asked to try again, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ChatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<BoxError> for ChatError {
    /// Finds the typed error inside a layer's error; anything else becomes [`ChatErrorKind::Other`].
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => {
                Self::new(ChatErrorKind::Other, format!("a model call layer failed: {error}")).with_source(error)
            }
        }
    }
}
