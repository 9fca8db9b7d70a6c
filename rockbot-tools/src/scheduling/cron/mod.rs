//! Cron expressions, and the times that tasks which run once name.
//!
//! Expressions mean the same as in Cronos, the library of the original: our own parser turns each
//! field into a set of numbers (`field`) and days (`days`), the `cron` crate finds civil times
//! that match them (`civil`), and jiff maps the civil times to instants of a time zone (`zone`).

mod civil;
mod days;
mod error;
mod field;
#[cfg(test)]
mod tests;
mod time;
mod zone;

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use civil::CivilTimes;
pub(crate) use error::CronError;
pub(crate) use time::parse_time;

/// Maximum length of an expression or a time, in bytes.
const MAX_LENGTH: usize = 256;

/// Names for expressions, and what they stand for.
const MACROS: [(&str, &str); 9] = [
    ("@every_second", "* * * * * *"),
    ("@every_minute", "* * * * *"),
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A cron expression, which names times that repeat.
///
/// It has five fields, or six with the second as the first of them:
///
/// | field | numbers | also |
/// |---|---|---|
/// | second | 0-59 | |
/// | minute | 0-59 | |
/// | hour | 0-23 | |
/// | day of month | 1-31 | `L`, `L-3`: the last day, three days before it; `15W`, `LW`: the workday nearest to it |
/// | month | 1-12, `JAN`-`DEC` | |
/// | day of week | 0-7, `SUN`-`SAT`; 0 and 7 are Sunday | `FRIL`: the last Friday; `FRI#2`: the second Friday |
///
/// All fields have `*`, lists (`1,2`), ranges (`1-5`, and `22-4` over the end), and steps:
/// `*/15`, `8-18/2`, and `5/20` from 5 to the end. Day of month and day of week must both match.
/// `@daily` and its like stand for an expression.
///
/// On nights on which clocks change, times that are skipped fire once, after the gap. Times that
/// are repeated fire once, unless second, minute or hour has a `*`, a range or a step, which
/// names an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CronExpr {
    text: String,
    times: CivilTimes,
}

impl CronExpr {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// [`CronError::Expression`] for a text that is none, [`CronError::Never`] for a date that does
    /// not exist, such as 30 February.
    pub(crate) fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let refuse = |reason: String| CronError::expression(text, reason);
        if text.is_empty() {
            return Err(refuse("it is empty".to_owned()));
        }
        if text.len() > MAX_LENGTH {
            return Err(refuse(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let fields = fields(text).map_err(refuse)?;
        let times = CivilTimes::parse(fields).map_err(refuse)?;
        let times = times.ok_or_else(|| CronError::never(text))?;
        let text = text.to_owned();
        Ok(Self { text, times })
    }

    /// Returns the expression as it was written, without the blanks around it.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the first instant after `after` at which the expression fires in `zone`. `None` if it
    /// never does again, because the calendar ends with the year 9999.
    pub(crate) fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let next = zone::next_instant(&self.times, to_instant(after)?, zone)?;
        from_instant(next)
    }
}

/// Splits an expression into its fields, with the second `0` if it has none.
fn fields(text: &str) -> Result<[&str; 6], String> {
    let text = match text.strip_prefix('@') {
        Some(_) => expand(text)?,
        None => text,
    };
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    match *fields {
        [minute, hour, day, month, weekday] => Ok(["0", minute, hour, day, month, weekday]),
        [second, minute, hour, day, month, weekday] => Ok([second, minute, hour, day, month, weekday]),
        [_] => Err("it has 1 field instead of 5, or 6 with seconds first".to_owned()),
        _ => Err(format!(
            "it has {} fields instead of 5, or 6 with seconds first",
            fields.len()
        )),
    }
}

/// Returns the expression for which the macro `name` stands.
fn expand(name: &str) -> Result<&'static str, String> {
    let found = MACROS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, expression)| *expression).ok_or_else(|| {
        let known = MACROS.map(|(known, _)| known).join(", ");
        format!("it is none of {known}")
    })
}

/// Returns the same instant of jiff, which ends with the year 9999.
fn to_instant(time: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(time.as_millis()).ok()?).ok()
}

/// Returns the same instant of jiff, or its last one.
pub(crate) fn instant(time: Timestamp) -> jiff::Timestamp {
    to_instant(time).unwrap_or(jiff::Timestamp::MAX)
}

fn from_instant(instant: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(instant.as_millisecond()).ok().map(Timestamp::from_millis)
}
