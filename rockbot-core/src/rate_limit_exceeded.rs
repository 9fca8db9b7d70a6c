//! The error of a rate limit, which the errors of turns, model calls and tool calls know.

use std::fmt;
use std::time::Duration;

/// A call that was refused because the rate limit would have made it wait too long.
///
/// Around model calls it becomes a [`ChatError`](crate::chat::ChatError) of kind
/// [`Saturated`](crate::chat::ChatErrorKind::Saturated), and around tool calls a
/// [`ToolError`](crate::tool::ToolError) with code
/// [`Denied`](crate::tool::ToolErrorCode::Denied); it is the source of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimitExceeded {
    pub(crate) retry_after: Duration,
}

impl RateLimitExceeded {
    /// Returns the time until the call would have begun.
    pub fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// Returns `true`: the same call may begin after [`retry_after`](Self::retry_after).
    pub fn retry_helps(&self) -> bool {
        true
    }
}

impl fmt::Display for RateLimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.retry_after.as_secs_f64().ceil();
        write!(f, "the rate limit is exceeded: try again in {seconds} s")
    }
}

impl std::error::Error for RateLimitExceeded {}
