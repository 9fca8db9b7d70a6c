//! The error of model calls, by kind.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use tower::timeout::error::Elapsed;

use crate::BoxError;
use crate::layer::RateLimitExceeded;

/// The error of a model call.
///
/// Callers decide by [`ChatError::kind`], never by the text. The message is for people: it states
/// the failure and the remedy. It never contains a key.
#[derive(Debug)]
pub struct ChatError {
    kind: ChatErrorKind,
    message: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    retry_advice: Option<bool>,
    overflow: Option<Overflow>,
    request_id: Option<Box<str>>,
    source: Option<BoxError>,
}

/// The sizes that a provider reported when a request exceeded the model's context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Overflow {
    /// Size of the context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Size of the request, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

impl Overflow {
    /// Creates the sizes, each as far as the provider reported it.
    pub fn new(limit: impl Into<Option<u64>>, asked: impl Into<Option<u64>>) -> Self {
        Self {
            limit: limit.into(),
            asked: asked.into(),
        }
    }
}

/// The reason why a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// The provider's rate limit of requests or tokens was exceeded.
    RateLimited,
    /// The server is overloaded or failed.
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
    /// Returns the name in journals, metrics and traces, such as `rate_limited`.
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

    /// Returns `true` if the same request may succeed a little later.
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

    /// Returns `true` if the same request may succeed with another model.
    pub fn other_model_helps(self) -> bool {
        self.retry_helps()
            || matches!(
                self,
                Self::QuotaExceeded | Self::Auth | Self::NotFound | Self::ContentFiltered
            )
    }

    /// Returns `true` if a shorter request may succeed.
    pub fn smaller_context_helps(self) -> bool {
        matches!(self, Self::ContextOverflow)
    }
}

impl ChatError {
    /// Creates an error of `kind`. `message` names the failure and the remedy.
    pub fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            retry_advice: None,
            overflow: None,
            request_id: None,
            source: None,
        }
    }

    /// Sets the HTTP status of the server's response.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the delay that the server asked for before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Sets whether a retry helps, where that is known better than by the kind.
    #[must_use]
    pub fn with_retry_advice(mut self, helps: bool) -> Self {
        self.retry_advice = Some(helps);
        self
    }

    /// Sets the sizes that the provider reported for a context overflow.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Sets the provider's name for the request, which its support asks for.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the reason why the call failed.
    pub fn kind(&self) -> ChatErrorKind {
        self.kind
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the HTTP status of the server's response, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns `true` if the same request may succeed a little later: by the advice for this error,
    /// else by its kind.
    pub fn retry_helps(&self) -> bool {
        self.retry_advice.unwrap_or_else(|| self.kind.retry_helps())
    }

    /// Returns the sizes that the provider reported for a context overflow, if it did.
    pub fn overflow(&self) -> Option<Overflow> {
        self.overflow
    }

    /// Returns the provider's name for the request, if the server sent one. Its support asks for it.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Returns the delay that the server asked for before a retry, if it did.
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
    /// Converts the error of a layer. A boxed [`ChatError`] is unwrapped; any other error becomes
    /// the source of a new error, whose kind is [`ChatErrorKind::TimedOut`] for tower's time-out
    /// layer, [`ChatErrorKind::Saturated`] for a [`RateLimitExceeded`], and else
    /// [`ChatErrorKind::Other`].
    ///
    /// ```
    /// use std::error::Error;
    /// use rockbot_core::BoxError;
    /// use rockbot_core::chat::{ChatError, ChatErrorKind};
    ///
    /// let disk_full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    /// let error = ChatError::from(BoxError::from(disk_full));
    /// assert_eq!(error.kind(), ChatErrorKind::Other);
    /// assert!(error.source().unwrap().is::<std::io::Error>());
    /// ```
    fn from(error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let converted = match error.downcast_ref::<RateLimitExceeded>() {
            Some(limit) => Self::new(ChatErrorKind::Saturated, limit.to_string())
                .with_retry_after(limit.retry_after())
                .with_retry_advice(true),
            None if error.is::<Elapsed>() => {
                let message = "the model took longer than a time-out layer allows";
                Self::new(ChatErrorKind::TimedOut, message)
            }
            None => Self::new(ChatErrorKind::Other, format!("a model call layer failed: {error}")),
        };
        converted.with_source(error)
    }
}
