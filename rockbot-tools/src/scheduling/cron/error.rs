//! Errors of cron expressions and times, for models and users.

use rockbot_core::support::loggable;

/// Maximum length of a user's text in an error, in characters.
const MAX_EXCERPT: usize = 60;

/// A refused cron expression or time. Its text states the problem, and shows an example that
/// works.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CronError {
    /// A text with a wrong field, or a wrong number of fields.
    #[error(
        "cron expression {expression}: {reason}. Write minute, hour, day of month, month and day of week, \
         such as \"30 9 * * MON-FRI\" for 9:30 on workdays"
    )]
    Expression {
        /// The text, shortened.
        expression: String,
        /// Problem of the text, in words.
        reason: String,
    },
    /// A cron expression that no date matches.
    #[error(
        "cron expression {expression} never fires: no date matches its day of month, month and day of week together. \
         Write a day that exists, such as \"0 9 L * *\" for 9:00 on the last day of each month"
    )]
    Never {
        /// The text, shortened.
        expression: String,
    },
    /// A text that is neither a date with a time nor a duration.
    #[error("time {time}: {reason}. Write a date and a time, such as \"2030-12-24T18:00\", or \"in 2 hours\"")]
    Time {
        /// The text, shortened.
        time: String,
        /// Problem of the text, in words.
        reason: String,
    },
    /// A time that is not in the future.
    #[error("time {time} is past: it is {now}. Write a later time, or one from now on, such as \"in 2 hours\"")]
    Past {
        /// The text, shortened.
        time: String,
        /// The current time, in the zone of the text.
        now: String,
    },
}

impl CronError {
    pub(crate) fn expression(expression: &str, reason: impl Into<String>) -> Self {
        Self::Expression {
            expression: quote(expression),
            reason: reason.into(),
        }
    }

    pub(super) fn never(expression: &str) -> Self {
        let expression = quote(expression);
        Self::Never { expression }
    }

    pub(super) fn time(time: &str, reason: impl Into<String>) -> Self {
        Self::Time {
            time: quote(time),
            reason: reason.into(),
        }
    }
}

/// Returns the beginning of `text` in quotes, on one line and without control characters.
pub(super) fn quote(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(MAX_EXCERPT).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    format!("\"{}{rest}\"", loggable(&head))
}
