//! Civil times that match a cron expression, computed by the `cron` crate.
//!
//! The crate gets explicit lists of numbers, since its grammar and its week differ from ours, and
//! a pretended UTC, since time zones are jiff's. Only this file knows it, and chrono, which it
//! speaks.

use std::fmt::Write as _;

use chrono::{Datelike as _, TimeDelta, TimeZone as _, Timelike as _, Utc};
use cron::Schedule;
use jiff::civil::{Date, DateTime, Time};

use super::days::Days;
use super::field::{HOUR, MINUTE, MONTH, SECOND};

/// Maximum distance to the next match, in years. 29 February on a given day of the week takes up
/// to 40, over a year such as 2100, which is no leap year.
const MAX_YEARS: i16 = 41;

/// First of the 28 years that the crate sees: among them is each kind of year, by its first day
/// and its length.
const FIRST_MODEL_YEAR: i16 = 2001;
const LAST_MODEL_YEAR: i16 = FIRST_MODEL_YEAR + 27;

/// The civil times of a cron expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CivilTimes {
    /// Matches a superset of the days.
    schedule: Schedule,
    days: Days,
    /// `true` if the time of day is an interval, and not a list of single times.
    pub(super) is_interval: bool,
}

impl CivilTimes {
    /// Reads the fields of an expression, from the second to the day of week. Returns `None` if no
    /// date matches them.
    ///
    /// # Errors
    ///
    /// The reason, which names the field.
    pub(super) fn parse([second, minute, hour, day, month, weekday]: [&str; 6]) -> Result<Option<Self>, String> {
        let second = SECOND.parse(second)?;
        let minute = MINUTE.parse(minute)?;
        let hour = HOUR.parse(hour)?;
        let month = MONTH.parse(month)?;
        let days = Days::parse(day, weekday)?;
        let fields = [
            list((0..=59).filter(|number| second.contains(*number)), 60),
            list((0..=59).filter(|number| minute.contains(*number)), 60),
            list((0..=23).filter(|number| hour.contains(*number)), 24),
            list(days.possible_days_of_month(), 31),
            list((1..=12).filter(|number| month.contains(*number)), 12),
            // The crate's week begins with Sunday as 1.
            list(days.possible_days_of_week().map(|day| day + 1), 7),
            Some(format!("{FIRST_MODEL_YEAR}-{LAST_MODEL_YEAR}")),
        ];
        // An empty list is a field without a possible number.
        let Some(fields) = fields.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let schedule = fields.join(" ").parse().map_err(|error| format!("{error}"))?;
        let times = Self {
            schedule,
            days,
            is_interval: second.is_interval || minute.is_interval || hour.is_interval,
        };
        let first = DateTime::from_parts(january_first(FIRST_MODEL_YEAR), Time::midnight());
        Ok(times.next_from(first).is_some().then_some(times))
    }

    /// Returns the first of the times that is not before `from`. `None` if there is none for
    /// [`MAX_YEARS`] years, or before the year 10000.
    pub(super) fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let last_year = from.year().saturating_add(MAX_YEARS);
        let mut from = from;
        while from.year() <= last_year {
            from = match self.next_in_year(from) {
                Some(found) if self.days.contains(found.date()) => return Some(found),
                Some(found) => DateTime::from_parts(found.date().tomorrow().ok()?, Time::midnight()),
                None => DateTime::from_parts(Date::new(from.year() + 1, 1, 1).ok()?, Time::midnight()),
            };
        }
        None
    }

    /// Returns the crate's first time that is not before `from`, if it is in the same year.
    fn next_in_year(&self, from: DateTime) -> Option<DateTime> {
        let model = model_year(from.year());
        let [month, day, hour, minute, second] = [from.month(), from.day(), from.hour(), from.minute(), from.second()]
            .map(|part| part.unsigned_abs().into());
        let start = Utc
            .with_ymd_and_hms(model.into(), month, day, hour, minute, second)
            .single()?;
        // The crate looks for times after its argument.
        let found = self.schedule.after(&(start - TimeDelta::seconds(1))).next()?;
        if found.year() != i32::from(model) {
            return None;
        }
        let part = |part: u32| i8::try_from(part).ok();
        let date = Date::new(from.year(), part(found.month())?, part(found.day())?).ok()?;
        let time = Time::new(part(found.hour())?, part(found.minute())?, part(found.second())?, 0).ok()?;
        Some(DateTime::from_parts(date, time))
    }
}

/// Returns the model year with the same dates on the same days of the week.
fn model_year(year: i16) -> i16 {
    let kind = |year| {
        let first = january_first(year);
        (first.weekday(), first.in_leap_year())
    };
    let wanted = kind(year);
    let mut models = FIRST_MODEL_YEAR..=LAST_MODEL_YEAR;
    models.find(|model| kind(*model) == wanted).unwrap_or(FIRST_MODEL_YEAR)
}

fn january_first(year: i16) -> Date {
    Date::new(year, 1, 1).unwrap_or(Date::MAX)
}

/// Writes `numbers` as a field of the crate: `*` if they are all `count` of the field. `None` if
/// there are none.
fn list(numbers: impl IntoIterator<Item = u8>, count: usize) -> Option<String> {
    let numbers: Vec<u8> = numbers.into_iter().collect();
    if numbers.len() == count {
        return Some("*".to_owned());
    }
    let (first, others) = numbers.split_first()?;
    let mut text = first.to_string();
    for number in others {
        // Writing to a `String` never fails.
        let _ = write!(text, ",{number}");
    }
    Some(text)
}
