//! The errors of tool calls.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use tower::timeout::error::Elapsed;

use super::{ArgumentError, Effect};
use crate::layer::RateLimitExceeded;
use crate::{BoxError, ToolName};

/// Maximum number of sources of an error that are searched for a time-out.
const MAX_SOURCES: usize = 16;

/// The text of the innermost source of a time-out of reqwest.
const HTTP_TIMEOUT: &str = "operation timed out";

/// The kind of a tool failure.
///
/// Its names are part of the wire format. Names that this version does not know deserialize as
/// [`ToolErrorCode::ExecutionFailed`], so that new codes do not break old programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ToolErrorCode {
    /// No tool is registered under this name.
    ToolNotFound,
    /// The tool ran and failed.
    ExecutionFailed,
    /// The tool took too long, and calling it again does no harm.
    Timeout,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
    /// The call needs an approval that it does not have.
    ApprovalRequired,
    /// A person, a policy or a tool layer refused the call.
    Denied,
    /// The call was cancelled, for example because its turn was.
    Cancelled,
    /// The call was interrupted or took too long, and it is not known whether it took effect. It is
    /// not repeated.
    OutcomeUnknown,
}

impl ToolErrorCode {
    /// All codes, for the search by name.
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

    /// Parses the name of a code, ignoring case and underscores: `tool_not_found` is
    /// [`ToolErrorCode::ToolNotFound`]. Returns [`ToolErrorCode::ExecutionFailed`] for an unknown
    /// name: a code of another program at least means that the call failed.
    ///
    /// ```
    /// use rockbot_core::tool::ToolErrorCode;
    ///
    /// assert_eq!(ToolErrorCode::named("invalid_arguments"), ToolErrorCode::InvalidArguments);
    /// assert_eq!(ToolErrorCode::named("OutOfCoffee"), ToolErrorCode::ExecutionFailed);
    /// ```
    pub fn named(name: &str) -> Self {
        let name = name.replace('_', "");
        let mut all = Self::ALL.into_iter();
        all.find(|code| code.name().eq_ignore_ascii_case(&name))
            .unwrap_or(Self::ExecutionFailed)
    }

    /// Returns the name of the code on the wire and in metrics.
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

    /// Returns `true` if repeating the same call does no harm and may succeed a little later. Only a
    /// [`ToolErrorCode::Timeout`] is retryable; for a mutating call that took too long the host reports
    /// [`ToolErrorCode::OutcomeUnknown`] instead.
    pub fn retry_helps(self) -> bool {
        self == Self::Timeout
    }
}

impl<'de> Deserialize<'de> for ToolErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|name| Self::named(&name))
    }
}

/// An error of a tool call: a code for programs, and a message that the model reads.
///
/// The message should name the next step, because the model acts on it. Any
/// [`Error`](std::error::Error) that a tool closure returns with `?` becomes a `ToolError` with
/// [`ToolErrorCode::ExecutionFailed`].
///
/// ```
/// use rockbot_core::tool::{ToolError, ToolErrorCode};
///
/// let error = ToolError::new(ToolErrorCode::Denied, "the calendar is read-only: ask the user to book by phone");
/// assert_eq!(error.code(), ToolErrorCode::Denied);
/// assert!(!error.retry_helps());
/// ```
#[derive(Debug)]
pub struct ToolError {
    code: ToolErrorCode,
    message: String,
    is_retryable: bool,
    /// `true` if the call took too long, whatever the code says of its outcome.
    pub(super) is_time_out: bool,
    source: Option<BoxError>,
}

impl ToolError {
    /// Creates an error. The model reads `message`, so it should name the next step. Whether a
    /// retry helps follows from `code`; [`ToolError::with_retryable`] overrides it.
    pub fn new(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            is_retryable: code.retry_helps(),
            is_time_out: code == ToolErrorCode::Timeout,
            source: None,
        }
    }

    /// Creates an error with [`ToolErrorCode::ExecutionFailed`]: the tool ran and failed.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorCode::ExecutionFailed, message)
    }

    /// Creates an error with [`ToolErrorCode::InvalidArguments`]: the arguments do not fit the tool.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorCode::InvalidArguments, message)
    }

    /// Creates the error of arguments that do not match the schema of `tool`, as the model reads it.
    pub fn of_arguments(tool: &ToolName, error: ArgumentError) -> Self {
        Self::invalid_arguments(format!("invalid arguments for `{tool}`:\n{error}")).with_source(error)
    }

    /// Creates the error of a call that took too long, as `what` describes. It is a retryable
    /// [`ToolErrorCode::Timeout`] unless `effect` is mutating: then the call may have taken effect,
    /// so it is [`ToolErrorCode::OutcomeUnknown`].
    pub fn too_long(what: impl fmt::Display, effect: Effect) -> Self {
        match effect {
            Effect::Pure | Effect::Idempotent => {
                let message = format!("{what}; it may be tried again, perhaps with less to do");
                Self::new(ToolErrorCode::Timeout, message)
            }
            Effect::Mutating => Self {
                is_time_out: true,
                ..Self::outcome_unknown(what)
            },
        }
    }

    /// Creates an error with [`ToolErrorCode::OutcomeUnknown`]: because of `what` it is not known
    /// whether the call took effect.
    pub fn outcome_unknown(what: impl fmt::Display) -> Self {
        let message = format!("{what}; it may or may not have taken effect, so check before you try it again");
        Self::new(ToolErrorCode::OutcomeUnknown, message)
    }

    /// Converts the error of a layer around a call with `effect`. A boxed `ToolError` is unwrapped;
    /// any other error becomes the source of a new error: after tower's time-out layer the call
    /// [took too long](ToolError::too_long), a [`RateLimitExceeded`] is [`ToolErrorCode::Denied`],
    /// any other time-out [`ToolErrorCode::Timeout`], and anything else
    /// [`ToolErrorCode::ExecutionFailed`]. A time-out around a mutating call is
    /// [`ToolErrorCode::OutcomeUnknown`], whichever error says so.
    ///
    /// ```
    /// use rockbot_core::BoxError;
    /// use rockbot_core::tool::{Effect, ToolError, ToolErrorCode};
    ///
    /// let closed = ToolError::new(ToolErrorCode::Denied, "the shop is closed: call it on Monday");
    /// let error = ToolError::from_layer(BoxError::from(closed), Effect::Mutating);
    /// assert_eq!(error.code(), ToolErrorCode::Denied);
    /// ```
    pub fn from_layer(error: BoxError, effect: Effect) -> Self {
        if let Some(limit) = error.downcast_ref::<RateLimitExceeded>() {
            let denied = Self::new(ToolErrorCode::Denied, limit.to_string());
            return denied.with_retryable(true).with_source(error);
        }
        if error.is::<Elapsed>() {
            return Self::too_long("the tool exceeded its time limit", effect).with_source(error);
        }
        Self::from(error).after(effect)
    }

    /// Returns the error of a call with `effect` that failed with this error: a mutating call that
    /// timed out may have taken effect, so its error becomes [`ToolErrorCode::OutcomeUnknown`].
    #[must_use]
    pub fn after(self, effect: Effect) -> Self {
        match (self.code, effect) {
            (ToolErrorCode::Timeout, Effect::Mutating) => Self {
                is_time_out: true,
                ..Self::outcome_unknown(&self).with_source(self)
            },
            _ => self,
        }
    }

    /// Sets whether the same call may succeed a little later. By default only a time-out may.
    #[must_use]
    pub fn with_retryable(mut self, is_retryable: bool) -> Self {
        self.is_retryable = is_retryable;
        self
    }

    /// Sets the cause of this error. It appears in logs; the model does not see it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of failure.
    pub fn code(&self) -> ToolErrorCode {
        self.code
    }

    /// Returns the message that the model reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns `true` if the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
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
    /// Returns the `ToolError` inside the box, if there is one. A time-out of the tool's own, such
    /// as the time-out of tokio, an `io::Error` or an HTTP client, becomes
    /// [`ToolErrorCode::Timeout`], and any other error [`ToolErrorCode::ExecutionFailed`]. The
    /// boxed error is the source.
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) if is_timeout(&*error) => {
                Self::new(ToolErrorCode::Timeout, error.to_string()).with_source(error)
            }
            Err(error) => Self::execution_failed(error.to_string()).with_source(error),
        }
    }
}

/// Reports whether an error, or a source of it, is a time-out.
fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let sources = std::iter::successors(Some(error), |error| error.source());
    // Sources may form a circle, which a foreign error cannot be trusted not to.
    sources.take(MAX_SOURCES).any(|error| {
        let is_io = |error: &std::io::Error| error.kind() == std::io::ErrorKind::TimedOut;
        error.is::<tokio::time::error::Elapsed>()
            || error.is::<Elapsed>()
            || error.downcast_ref().is_some_and(is_io)
            // reqwest keeps the type of its time-outs to itself, and this crate does not depend on it.
            || error.source().is_none() && error.to_string() == HTTP_TIMEOUT
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::tool::ToolInvokeResponse;

    #[track_caller]
    fn check(error: impl Into<BoxError>, code: ToolErrorCode) {
        let error = ToolError::from(error.into());
        assert_eq!(
            (error.code(), error.retry_helps()),
            (code, code == ToolErrorCode::Timeout)
        );
    }

    /// An error with a source.
    #[derive(Debug, thiserror::Error)]
    #[error("the request failed")]
    struct Outer(#[source] BoxError);

    #[tokio::test(start_paused = true)]
    async fn a_time_out_of_the_tools_own_is_one() {
        let elapsed = tokio::time::timeout(std::time::Duration::ZERO, std::future::pending::<()>()).await;
        check(elapsed.unwrap_err(), ToolErrorCode::Timeout);
        check(Elapsed::new(), ToolErrorCode::Timeout);
        check(io::Error::from(io::ErrorKind::TimedOut), ToolErrorCode::Timeout);
        check(
            Outer(io::Error::from(io::ErrorKind::TimedOut).into()),
            ToolErrorCode::Timeout,
        );
        check(Outer(HTTP_TIMEOUT.into()), ToolErrorCode::Timeout);
        check(io::Error::from(io::ErrorKind::NotFound), ToolErrorCode::ExecutionFailed);
        check("the operation timed out of the window", ToolErrorCode::ExecutionFailed);
    }
    #[test]
    fn a_call_that_took_too_long_is_told_apart_from_one_whose_answer_was_lost() {
        let timed_out = |error: &ToolError| {
            let response = ToolInvokeResponse::failed("1".into(), "pay".into(), error);
            let text = serde_json::to_string(&response).unwrap();
            let read: ToolInvokeResponse = serde_json::from_str(&text).unwrap();
            assert_eq!(read.code, response.code);
            (read.timed_out(), text.contains("isTimeOut"))
        };
        assert_eq!(
            timed_out(&ToolError::too_long("it hangs", Effect::Mutating)),
            (true, true)
        );
        let by_itself = ToolError::new(ToolErrorCode::Timeout, "it hangs");
        assert_eq!(timed_out(&by_itself.after(Effect::Mutating)), (true, true));
        assert_eq!(timed_out(&ToolError::too_long("it hangs", Effect::Pure)), (true, false));
        assert_eq!(
            timed_out(&ToolError::outcome_unknown("its process ended")),
            (false, false)
        );
    }
}
