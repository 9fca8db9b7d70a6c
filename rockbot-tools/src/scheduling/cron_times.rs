//! The times of a cron expression in a time zone, for parts of a host that keep no tasks.

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use super::ScheduleError;
use super::cron::CronExpr;

/// The times that a cron expression names in a time zone, as those of a task: on nights on which
/// the clocks change, a skipped time comes after the gap, and a repeated time comes once.
///
/// ```
/// use rockbot_core::Timestamp;
/// use rockbot_tools::scheduling::CronTimes;
///
/// let nights = CronTimes::new("30 3 * * *", Some("Europe/Oslo"))?;
/// let new_year = Timestamp::from_millis(1_767_225_600_000); // 2026-01-01T00:00:00Z
/// assert_eq!(nights.next_after(new_year), Some(Timestamp::from_millis(1_767_234_600_000)));
/// # Ok::<(), rockbot_tools::scheduling::ScheduleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CronTimes {
    expression: CronExpr,
    zone: TimeZone,
}

impl CronTimes {
    /// Reads an expression of five fields, or of six with the second first. `zone` is the IANA name
    /// of a time zone; `None` means the zone of this machine.
    ///
    /// # Errors
    ///
    /// Returns [`ScheduleError::Invalid`] for a wrong expression and for an unknown time zone.
    pub fn new(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let expression = CronExpr::parse(expression).map_err(|error| ScheduleError::Invalid(error.to_string()))?;
        let named = |name| TimeZone::get(name).map_err(|error| ScheduleError::Invalid(error.to_string()));
        let zone = zone.map_or_else(|| Ok(TimeZone::system()), named)?;
        Ok(Self { expression, zone })
    }

    /// Returns the first time after `after`; `None` if there is none before the year 10 000.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.expression.next_after(after, &self.zone)
    }
}
