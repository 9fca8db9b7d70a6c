//! The error of a message handler, which decides how a delivery ends.

use std::error::Error;
use std::fmt;

use super::json_error::describe_json_error;
use super::{Disposition, PayloadError};
use crate::BoxError;

/// The error of a message handler, with the decision whether the message is delivered again.
///
/// A handler may return any error, and `?` converts it: the message is then delivered again,
/// except after a [`PayloadError`], which no further delivery can fix. Return a `HandlerError` to
/// decide otherwise. It reads as the error that it was created from, and has the same
/// [source](Error::source).
///
/// ```
/// use std::error::Error;
/// use rockbot_core::messaging::HandlerError;
///
/// let error = HandlerError::retry(std::fmt::Error);
/// assert!(error.retry_helps() && error.get_ref().is::<std::fmt::Error>());
/// assert_eq!(HandlerError::dead_letter("no such invoice").to_string(), "no such invoice");
/// ```
#[derive(Debug)]
pub struct HandlerError {
    error: BoxError,
    is_final: bool,
    is_answered: bool,
}

impl HandlerError {
    /// Creates an error that makes the bus deliver the message again.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        Self {
            error: error.into(),
            is_final: false,
            is_answered: false,
        }
    }

    /// Creates an error that makes the message a dead letter: it can never be handled.
    pub fn dead_letter(error: impl Into<BoxError>) -> Self {
        Self {
            is_final: true,
            ..Self::retry(error)
        }
    }

    /// Marks the sender as answered. Without this, the sender of a request that can never be handled
    /// gets an [`ErrorReply`](super::ErrorReply); if the attempts run out instead, the sender waits
    /// until its own time limit.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.is_answered = true;
        self
    }

    /// Returns the error that this error was created from.
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.error
    }

    /// Returns `true` if the message is delivered again.
    pub fn retry_helps(&self) -> bool {
        !self.is_final
    }

    /// Returns the reason to report to the sender: the message can never be handled, and the sender
    /// was not answered.
    pub fn refusal(&self) -> Option<String> {
        (self.is_final && !self.is_answered).then(|| self.reason())
    }

    fn reason(&self) -> String {
        chain(&*self.error)
    }
}

impl From<BoxError> for HandlerError {
    /// Converts the error that a handler returned: a boxed `HandlerError` is unwrapped.
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) if error.is::<PayloadError>() => Self::dead_letter(error),
            Err(error) => Self::retry(error),
        }
    }
}

impl From<HandlerError> for Disposition {
    fn from(error: HandlerError) -> Self {
        let reason = error.reason();
        if error.is_final {
            Self::DeadLetter { reason }
        } else {
            Self::Retry { reason }
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for HandlerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Returns the messages of an error and its sources, each once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = message_of(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = message_of(cause);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Returns the message of an error. Reasons are logged, so a JSON error is described without
/// quoting the message body.
fn message_of(error: &(dyn Error + 'static)) -> String {
    let of_json = error.downcast_ref().map(describe_json_error);
    of_json.unwrap_or_else(|| error.to_string())
}
