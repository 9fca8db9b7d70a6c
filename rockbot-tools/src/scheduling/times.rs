//! The times that the expression of a task names, and searches among them.

use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use super::cron::{CronError, CronExpr};

/// Beginning of the expression of an interval, as in `@every 90s`.
const EVERY: &str = "@every ";

/// Times are whole seconds.
const SECOND: u64 = 1000;

/// The times of a task.
#[derive(Debug)]
pub(super) enum Times {
    Cron(Box<CronExpr>),
    /// An interval, from the creation of the task on.
    Every(Duration),
    Once(Timestamp),
}

impl Times {
    /// Reads an expression as the file keeps it.
    pub(super) fn parse(text: &str) -> Result<Self, CronError> {
        if let Some(interval) = text.trim().strip_prefix(EVERY) {
            return interval_of(interval).map(Self::Every).ok_or_else(|| {
                CronError::expression(
                    text,
                    "an interval is a duration from one second on, as in `@every 90s`".to_owned(),
                )
            });
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>()
            && let Ok(millis) = u64::try_from(time.as_millisecond())
        {
            return Ok(Self::Once(Timestamp::from_millis(millis)));
        }
        Ok(Self::Cron(Box::new(CronExpr::parse(text)?)))
    }

    /// Returns the first time after `after`. Intervals are counted from `start`.
    pub(super) fn next_after(&self, after: Timestamp, start: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after, zone),
            Self::Once(time) => Some(*time).filter(|time| *time > after),
            Self::Every(interval) => {
                let interval = u64::try_from(interval.as_millis()).ok()?;
                let passed = after.as_millis().saturating_sub(start.as_millis()) / interval;
                let next = passed.checked_add(1)?.checked_mul(interval)?;
                start.as_millis().checked_add(next).map(Timestamp::from_millis)
            }
        }
    }

    /// Returns the last time that is not after `until`, given an earlier time. It halves the range
    /// instead of counting, so a year of seconds takes as many steps as there are bits in its length.
    pub(super) fn last_until(
        &self,
        earlier: Timestamp,
        until: Timestamp,
        start: Timestamp,
        zone: &TimeZone,
    ) -> Timestamp {
        // `found` is a time; none is after `end` and not after `until`.
        let mut found = earlier;
        let mut end = until;
        while end.as_millis().saturating_sub(found.as_millis()) >= SECOND {
            let middle = Timestamp::from_millis(found.as_millis().midpoint(end.as_millis()));
            match self.next_after(middle, start, zone).filter(|next| *next <= until) {
                Some(next) => found = next,
                None => end = middle,
            }
        }
        found
    }
}

/// Returns the expression of an interval. Parts of a second are dropped.
pub(super) fn every(interval: Duration) -> String {
    format!("{EVERY}{}s", interval.as_secs())
}

fn interval_of(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.trim().parse().ok()?;
    let interval = Duration::try_from(span).ok()?;
    (interval.as_secs() >= 1).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let time: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_millis(u64::try_from(time.as_millisecond()).unwrap())
    }

    #[test]
    fn the_last_time_is_found_as_counting_would() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let start = at("2026-10-24T00:00:00Z");
        for expression in [
            "*/7 * * * *",
            "30 2 * * *",
            "15 2,3 * * *",
            "0 0 1 * *",
            "@every 47m",
            "*/20 * * * * *",
        ] {
            let times = Times::parse(expression).unwrap();
            let first = times.next_after(start, start, &zone).unwrap();
            // Over the night on which the clocks are set back.
            for minutes in [0, 1, 13, 59, 60, 600, 1439, 1500, 1501, 2880] {
                let until = first.after(Duration::from_secs(60 * minutes));
                let mut counted = first;
                while let Some(next) = times.next_after(counted, start, &zone).filter(|next| *next <= until) {
                    counted = next;
                }
                assert_eq!(
                    times.last_until(first, until, start, &zone),
                    counted,
                    "{expression} until {until:?}"
                );
            }
        }
    }

    #[test]
    fn a_long_pause_takes_few_steps() {
        let zone = TimeZone::UTC;
        let start = at("2026-01-01T00:00:00Z");
        let times = Times::parse("* * * * * *").unwrap();
        let until = at("2926-01-01T00:00:00Z");
        assert_eq!(times.last_until(start, until, start, &zone), until);
    }

    #[test]
    fn an_interval_is_one_second_at_least() {
        for wrong in ["@every ", "@every 0s", "@every -5m", "@every 100ms", "@every soon"] {
            assert!(Times::parse(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(Times::parse("@every 1h 30m"), Ok(Times::Every(interval)) if interval.as_secs() == 5400));
        assert_eq!(every(Duration::from_millis(90_900)), "@every 90s");
    }
}
