//! Times that a task which runs once names.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Zoned};
use rockbot_core::Timestamp;

use super::error::{CronError, quote};
use super::zone::first_instant;
use super::{MAX_LENGTH, from_instant, to_instant};

/// Maximum distance of a time from now.
const MAX_DAYS: i64 = 36_525;

/// Returns the instant that `text` names: a date and a time, or a duration from `now` on.
///
/// | text | meaning |
/// |---|---|
/// | `2026-12-24T18:00`, `2026-12-24 18:00:30` | local time in `zone` |
/// | `2026-12-24T18:00Z`, `2026-12-24T18:00+01:00` | time with its offset |
/// | `in 30 minutes`, `in 2 hours 30 minutes` | time that elapses |
/// | `in 3 days`, `in 2 weeks` | the same local time, so many days later |
///
/// A local time that the clocks skip is the first instant after the gap; of a time that they
/// repeat, it is the first.
///
/// # Errors
///
/// [`CronError::Time`] for other texts and for times more than 100 years ahead,
/// [`CronError::Past`] for a time that is not after `now`.
pub(crate) fn parse_time(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, CronError> {
    let text = text.trim();
    let refuse = |reason: &str| CronError::time(text, reason);
    if text.is_empty() {
        return Err(refuse("it is empty"));
    }
    if text.len() > MAX_LENGTH {
        return Err(refuse(&format!("it is longer than {MAX_LENGTH} bytes")));
    }
    let current = to_instant(now).ok_or_else(|| refuse("the current time is not known"))?;
    let time = match strip_prefix(text, "in ") {
        Some(duration) => later(duration, &current.to_zoned(zone.clone())).map_err(|reason| refuse(&reason))?,
        None => date_and_time(text, zone).map_err(refuse)?,
    };
    if time <= current {
        let now = current.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M%:z").to_string();
        return Err(CronError::Past { time: quote(text), now });
    }
    if time.duration_since(current) > SignedDuration::from_hours(24 * MAX_DAYS) {
        return Err(refuse("it is more than 100 years ahead"));
    }
    from_instant(time).ok_or_else(|| refuse("it is out of range"))
}

/// Reads a date and a time, in `zone` if it has no offset of its own.
fn date_and_time(text: &str, zone: &TimeZone) -> Result<jiff::Timestamp, &'static str> {
    if text.contains('[') {
        return Err("the name of a zone in brackets is not supported; leave it out, or write an offset such as +01:00");
    }
    // With an offset or a `Z`.
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Ok(instant);
    }
    let has_time = text.contains(':');
    match text.parse::<DateTime>() {
        Ok(_) if !has_time => Err("it has no time of day"),
        Ok(civil) => first_instant(civil, zone).ok_or("it is out of range"),
        Err(_) => Err("it is neither a date with a time nor a duration from now on"),
    }
}

/// Reads a duration such as `2 hours 30 minutes` and adds it to `now`.
fn later(duration: &str, now: &Zoned) -> Result<jiff::Timestamp, String> {
    let words: Vec<&str> = duration
        .split([' ', ','])
        .filter(|word| !word.is_empty() && *word != "and")
        .collect();
    if words.is_empty() || words.len() % 2 == 1 {
        return Err("a duration is a number and a unit".to_owned());
    }
    let mut time = now.clone();
    for pair in words.chunks_exact(2) {
        let [count, unit] = pair else { continue };
        let count = match *count {
            "a" | "an" | "one" => 1,
            count => count_of(count)?,
        };
        time = time
            .checked_add(span(count, unit)?)
            .map_err(|_| "it is out of range".to_owned())?;
    }
    Ok(time.timestamp())
}

/// Reads a number of units.
fn count_of(text: &str) -> Result<i64, String> {
    let is_number = text.len() <= 9 && text.bytes().all(|digit| digit.is_ascii_digit());
    let count = is_number.then(|| text.parse().ok()).flatten();
    count.ok_or_else(|| format!("{} is not a whole number of up to 9 digits", quote(text)))
}

/// Returns `count` of the unit with this name.
fn span(count: i64, unit: &str) -> Result<Span, String> {
    let unit = unit.to_ascii_lowercase();
    let span = Span::new();
    let span = match unit.as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => span.try_seconds(count),
        "m" | "min" | "mins" | "minute" | "minutes" => span.try_minutes(count),
        "h" | "hour" | "hours" => span.try_hours(count),
        "d" | "day" | "days" => span.try_days(count),
        "w" | "week" | "weeks" => span.try_weeks(count),
        _ => {
            let units = "seconds, minutes, hours, days and weeks";
            return Err(format!("the unit {} is not one of {units}", quote(&unit)));
        }
    };
    span.map_err(|_| "it is out of range".to_owned())
}

fn strip_prefix<'text>(text: &'text str, prefix: &str) -> Option<&'text str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
