//! Days of cron expressions: days of a month and of a week, also counted from the end of a month.

use jiff::civil::{Date, Weekday};

use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, Values, number};

/// The days of a cron expression, in the months that it allows.
///
/// A date must match both the day of month and the day of week, as in Cronos. (In `crontab`, a
/// match of either is enough.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Days {
    of_month: DayOfMonth,
    of_week: DayOfWeek,
}

/// A day-of-month field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DayOfMonth {
    Listed(Values),
    /// `L`, `L-n`, `LW`, `L-nW`: the day `before` the last day, moved to a workday if `to_workday`.
    Last {
        before: u8,
        to_workday: bool,
    },
    /// `nW`: the workday nearest to this day, in the same month.
    NearestWorkday(u8),
}

/// A day-of-week field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DayOfWeek {
    Listed(Values),
    /// `d#n`: the day's `nth` occurrence in the month.
    Nth {
        day: u8,
        nth: u8,
    },
    /// `dL`: the day's last occurrence in the month.
    Last(u8),
}

impl Days {
    /// Reads the two fields.
    ///
    /// # Errors
    ///
    /// The reason, which names the field.
    pub(super) fn parse(of_month: &str, of_week: &str) -> Result<Self, String> {
        Ok(Self {
            of_month: DayOfMonth::parse(of_month)?,
            of_week: DayOfWeek::parse(of_week)?,
        })
    }

    /// Returns `true` if the expression fires on `date`, whatever its month.
    pub(super) fn contains(&self, date: Date) -> bool {
        self.of_month.contains(date) && self.of_week.contains(date)
    }

    /// Returns the days of the month when the expression may fire: it never fires on other days.
    pub(super) fn possible_days_of_month(&self) -> impl Iterator<Item = u8> {
        (1..=31).filter(|day| self.of_month.may_contain(*day) && self.of_week.may_be_on(*day))
    }

    /// Returns the days of the week when the expression may fire, from 0 for Sunday to 6.
    pub(super) fn possible_days_of_week(&self) -> impl Iterator<Item = u8> {
        (0..7).filter(|day| match &self.of_week {
            DayOfWeek::Listed(days) => contains_weekday(*days, *day),
            DayOfWeek::Nth { day: named, .. } | DayOfWeek::Last(named) => named == day,
        })
    }
}

impl DayOfMonth {
    fn parse(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        if let Some(last) = upper.strip_prefix('L') {
            let (before, to_workday) = match last.strip_suffix('W') {
                Some(before) => (before, true),
                None => (last, false),
            };
            let days = match before.strip_prefix('-') {
                Some(days) => number(days).filter(|days| *days <= 30),
                None => before.is_empty().then_some(0),
            };
            let before = days.ok_or_else(|| refuse_last(text))?;
            return Ok(Self::Last { before, to_workday });
        }
        match upper.strip_suffix('W') {
            Some(day) => Ok(Self::NearestWorkday(
                DAY_OF_MONTH.number(day).map_err(|_| refuse_last(text))?,
            )),
            None if upper.contains(['L', 'W']) => Err(refuse_last(text)),
            None => DAY_OF_MONTH.parse(text).map(Self::Listed),
        }
    }

    fn contains(&self, date: Date) -> bool {
        let day = u8::try_from(date.day()).unwrap_or_default();
        let last = u8::try_from(date.days_in_month()).unwrap_or_default();
        let named = match self {
            Self::Listed(days) => return days.contains(day),
            Self::Last { before, to_workday } => last.checked_sub(*before).map(|day| (day, *to_workday)),
            Self::NearestWorkday(named) => (*named <= last).then_some((*named, true)),
        };
        match named {
            Some((named, true)) => named > 0 && nearest_workday(date, named, last) == day,
            Some((named, false)) => named == day,
            None => false,
        }
    }

    /// Returns `false` if no month has this day.
    fn may_contain(&self, day: u8) -> bool {
        match self {
            Self::Listed(days) => days.contains(day),
            // Months have 28 to 31 days, and a day moves by two at most.
            Self::Last { before, to_workday } => {
                let moves = if *to_workday { 2 } else { 0 };
                (28_u8..=31).any(|last| last.abs_diff(day + before) <= moves)
            }
            Self::NearestWorkday(named) => named.abs_diff(day) <= 2,
        }
    }
}

impl DayOfWeek {
    fn parse(text: &str) -> Result<Self, String> {
        let weekday = |text| DAY_OF_WEEK.number(text).map(|day| day % 7);
        if let Some((day, nth)) = text.split_once('#') {
            let day = weekday(day)?;
            let nth = number(nth).filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| DAY_OF_WEEK.refuse(text, "has no number from 1 to 5 after the `#`"))?;
            return Ok(Self::Nth { day, nth });
        }
        match text.strip_suffix(['L', 'l']) {
            Some("") => Err("day of week: `L` needs a day before it, such as `FRIL` for the last Friday".to_owned()),
            Some(day) => weekday(day).map(Self::Last),
            None => DAY_OF_WEEK.parse(text).map(Self::Listed),
        }
    }

    fn contains(&self, date: Date) -> bool {
        let weekday = weekday_number(date.weekday());
        match self {
            Self::Listed(days) => contains_weekday(*days, weekday),
            Self::Nth { day, nth } => *day == weekday && (date.day() + 6) / 7 == i8::try_from(*nth).unwrap_or(i8::MAX),
            Self::Last(day) => *day == weekday && date.day() + 7 > date.days_in_month(),
        }
    }

    /// Returns `false` if the days of the week are never on this day of a month.
    fn may_be_on(&self, day_of_month: u8) -> bool {
        match self {
            Self::Listed(_) => true,
            Self::Nth { nth, .. } => day_of_month.div_ceil(7) == *nth,
            Self::Last(_) => day_of_month >= 22,
        }
    }
}

/// Returns the day of the workday that is nearest to the day `named`, in the month of `date` with
/// `last` days.
fn nearest_workday(date: Date, named: u8, last: u8) -> u8 {
    // The day's distance from `date` within the week tells its weekday, without a date that may not
    // exist.
    let day = i16::from(date.day());
    let moved = (i16::from(named) - day).rem_euclid(7);
    let weekday = (i16::from(weekday_number(date.weekday())) + moved) % 7;
    match weekday {
        6 if named == 1 => named + 2,
        6 => named - 1,
        0 if named == last => named - 2,
        0 => named + 1,
        _ => named,
    }
}

/// Returns `true` if `days` has this day, from 0 for Sunday, which may also stand as 7.
fn contains_weekday(days: Values, day: u8) -> bool {
    days.contains(day) || (day == 0 && days.contains(7))
}

fn weekday_number(day: Weekday) -> u8 {
    u8::try_from(day.to_sunday_zero_offset()).unwrap_or_default()
}

fn refuse_last(text: &str) -> String {
    DAY_OF_MONTH.refuse(
        text,
        "is not one of `L` (the last day), `L-3` (three days before it), `LW` (the last workday) and `15W` (the workday \
         nearest to the 15th), which are alone in their field",
    )
}
