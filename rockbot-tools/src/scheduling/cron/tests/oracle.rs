//! A slow second computation of when expressions fire, which shares no code with the first.
//!
//! It tries each instant in turn, minute by minute or second by second, and asks of each whether
//! the expression fires then, by the text of its fields.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

const MONTHS: &str = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC";
const DAYS: &str = "SUN MON TUE WED THU FRI SAT";

/// An expression, field by field.
pub(super) struct Oracle {
    second: Vec<i8>,
    minute: Vec<i8>,
    hour: Vec<i8>,
    day: String,
    month: Vec<i8>,
    weekday: String,
    is_interval: bool,
    /// 60, or 1 for an expression with seconds.
    step: i64,
}

impl Oracle {
    pub(super) fn new(expression: &str) -> Self {
        let upper = expression.to_uppercase();
        let mut fields: Vec<&str> = upper.split_whitespace().collect();
        let step = if fields.len() == 5 { 60 } else { 1 };
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        Self {
            second: numbers(fields[0], 0, 59),
            minute: numbers(fields[1], 0, 59),
            hour: numbers(fields[2], 0, 23),
            day: fields[3].to_owned(),
            month: numbers(&named(fields[4], MONTHS, 1), 1, 12),
            weekday: named(fields[5], DAYS, 0),
            is_interval: fields[..3].iter().any(|field| field.contains(['*', '?', '-', '/'])),
            step,
        }
    }

    /// Returns the first instant after `after` at which the expression fires, if it is within
    /// `max_days`.
    pub(super) fn next_within(&self, max_days: i64, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut second = after.as_second().div_euclid(self.step) * self.step + self.step;
        let end = second + max_days * 86_400;
        while second < end {
            let instant = at(second);
            // Offsets are multiples of a quarter of an hour, and clocks change at such times.
            let quarter = second.rem_euclid(900) == 0;
            let gap = quarter.then(|| self.fires_after_gap(instant, zone));
            if gap == Some(true) || self.fires_at(instant, zone) {
                return Some(instant);
            }
            let here = zone.to_datetime(instant);
            let is_day = self.has_date(here.date());
            second += match quarter {
                // A day may have 23 hours.
                true if !is_day && !self.has_date(here.date() + 1.day()) => 82_800,
                true if !is_day || !self.hour.contains(&here.hour()) => 900,
                _ => self.step,
            };
        }
        None
    }

    /// Returns `true` if the clocks show a time of the expression, for the first time unless it is an
    /// interval.
    fn fires_at(&self, instant: Timestamp, zone: &TimeZone) -> bool {
        let civil = zone.to_datetime(instant);
        let is_repeated = match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Fold { after, .. } => after == zone.to_offset(instant),
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => false,
        };
        self.matches(civil) && (self.is_interval || !is_repeated)
    }

    /// Returns `true` if the clocks skip a time of the expression at `instant`.
    fn fires_after_gap(&self, instant: Timestamp, zone: &TimeZone) -> bool {
        let before = zone.to_datetime(instant - SignedDuration::from_secs(1));
        let now = zone.to_datetime(instant);
        let mut skipped = before + 1.second();
        while skipped < now {
            if self.matches(skipped) {
                return true;
            }
            skipped += 1.second();
        }
        false
    }

    fn matches(&self, civil: DateTime) -> bool {
        self.second.contains(&civil.second())
            && self.minute.contains(&civil.minute())
            && self.hour.contains(&civil.hour())
            && self.has_date(civil.date())
    }

    fn has_date(&self, date: Date) -> bool {
        self.month.contains(&date.month()) && has_day(&self.day, date) && has_weekday(&self.weekday, date)
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn has_day(field: &str, date: Date) -> bool {
    let last = date.last_of_month();
    let target = |text: &str| match text.strip_prefix('L') {
        Some("") => Some(last),
        Some(before) => {
            let target = last - before[1..].parse::<i64>().unwrap().days();
            (target.month() == date.month()).then_some(target)
        }
        None => Date::new(date.year(), date.month(), text.parse().unwrap()).ok(),
    };
    match field.strip_suffix('W') {
        Some(day) => target(day).is_some_and(|target| nearest_workday(target) == date),
        None if field.starts_with('L') => target(field) == Some(date),
        None => numbers(field, 1, 31).contains(&date.day()),
    }
}

/// Returns the workday of the same month with the least distance.
fn nearest_workday(target: Date) -> Date {
    let month = target
        .first_of_month()
        .series(1.day())
        .take(target.days_in_month().try_into().unwrap());
    let workdays = month.filter(|date| date.weekday().to_monday_one_offset() <= 5);
    workdays.min_by_key(|date| (date.day() - target.day()).abs()).unwrap()
}

fn has_weekday(field: &str, date: Date) -> bool {
    let is_on = |day: &str| day.parse::<i8>().unwrap() % 7 == date.weekday().to_sunday_zero_offset();
    if let Some(day) = field.strip_suffix('L') {
        return is_on(day) && (date + 7.days()).month() != date.month();
    }
    if let Some((day, nth)) = field.split_once('#') {
        let first = date.first_of_month();
        let same = first.series(1.day()).take_while(|other| *other <= date);
        let count = same.filter(|other| other.weekday() == date.weekday()).count();
        return is_on(day) && count.to_string() == nth;
    }
    let allowed = numbers(field, 0, 7);
    let weekday = date.weekday().to_sunday_zero_offset();
    allowed.iter().any(|day| day % 7 == weekday)
}

/// Replaces names by numbers from `first` on.
fn named(field: &str, names: &str, first: usize) -> String {
    let names = names.split(' ').enumerate();
    names.fold(field.to_owned(), |field, (position, name)| {
        field.replace(name, &(first + position).to_string())
    })
}

/// Returns the numbers of a field, by walking from each start to its end.
fn numbers(field: &str, first: i8, last: i8) -> Vec<i8> {
    field.split(',').flat_map(|item| walk(item, first, last)).collect()
}

fn walk(item: &str, first: i8, last: i8) -> Vec<i8> {
    let (range, step) = item.split_once('/').unwrap_or((item, "1"));
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
        None if matches!(range, "*" | "?") => (first, last),
        None if item.contains('/') => (range.parse().unwrap(), last),
        None => (range.parse().unwrap(), range.parse().unwrap()),
    };
    // A walk over the end of the week goes from Saturday to Sunday, which is 0.
    let last = if from > to && last == 7 { 6 } else { last };
    let mut number: i8 = if last == 6 { from % 7 } else { from };
    let mut walked = vec![number];
    while number != to {
        number = if number == last { first } else { number + 1 };
        walked.push(number);
    }
    walked.into_iter().step_by(step.parse().unwrap()).collect()
}
