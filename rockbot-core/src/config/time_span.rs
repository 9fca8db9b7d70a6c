//! Time spans in the notation of .NET.

use std::time::Duration;

const SECONDS_A_DAY: u64 = 24 * 3600;

/// Maximum number of days of a time span, as in .NET.
const MAX_DAYS: u64 = 10_675_199;

/// Parses `[d.]hh:mm[:ss[.fraction]]`: `00:05:00` is five minutes, `1.12:00` a day and a half.
/// Hours go up to 23; a fraction has up to nine digits.
///
/// Returns `None` for other text, such as a bare number, whose unit would be ambiguous, or a
/// negative time.
///
/// ```
/// # use std::time::Duration;
/// # use rockbot_core::config::parse_time_span;
/// assert_eq!(parse_time_span("00:05:00"), Some(Duration::from_secs(300)));
/// assert_eq!(parse_time_span("5"), None);
/// ```
pub fn parse_time_span(text: &str) -> Option<Duration> {
    let (hours, rest) = text.trim().split_once(':')?;
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let seconds = number(days, 8, MAX_DAYS)? * SECONDS_A_DAY
        + number(hours, 2, 23)? * 3600
        + number(minutes, 2, 59)? * 60
        + number(seconds, 2, 59)?;
    let nanoseconds = number(fraction, 9, u64::MAX)? * 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    Some(Duration::new(seconds, u32::try_from(nanoseconds).ok()?))
}

/// Formats a time span as [`parse_time_span`] parses it, with days and a fraction only if they
/// are not zero.
pub fn format_time_span(span: Duration) -> String {
    let seconds = span.as_secs();
    let nanoseconds = span.subsec_nanos();
    let days = match seconds / SECONDS_A_DAY {
        0 => String::new(),
        days => format!("{days}."),
    };
    let fraction = match nanoseconds {
        0 => String::new(),
        _ => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
    };
    let hours = seconds / 3600 % 24;
    let minutes = seconds / 60 % 60;
    format!("{days}{hours:02}:{minutes:02}:{:02}{fraction}", seconds % 60)
}

/// Parses a number of one to `digits` digits, up to `max`.
fn number(text: &str, digits: usize, max: u64) -> Option<u64> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= max)
}
