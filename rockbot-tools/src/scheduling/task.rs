//! Scheduled tasks, as the file keeps them.

use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::trust::Label;
use rockbot_core::{Principal, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::cron::CronExpr;

/// Maximum time by which a run of a recurring task is late; a time that was missed by more is not run.
const LATE: Duration = Duration::from_secs(60 * 60);

/// Maximum time by which a run-once task is late.
const LATE_ONCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Time by which a run counts as late, and says so.
const TOLERANCE: Duration = Duration::from_secs(60);

/// A task and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScheduledTask {
    pub(super) name: String,
    /// A cron expression, or the time of a run-once task.
    pub(super) cron_expression: String,
    /// The message of each run.
    pub(super) description: String,
    #[serde(with = "rockbot_core::rfc3339")]
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_time")]
    pub(super) last_fired_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) run_once: bool,
    /// The principal that the task belongs to.
    #[serde(default)]
    pub(super) principal: Principal,
    /// Label of what the task was made of, if others wrote some of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<Label>,
    /// Number of runs that failed since the last one that did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) failures: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_paused: bool,
    /// The last time that was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Occurrence>,
}

/// A time at which a task was due, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Occurrence {
    #[serde(with = "rockbot_core::rfc3339")]
    pub(super) due: Timestamp,
    pub(super) state: OccurrenceState,
    /// The turn of the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<TurnId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OccurrenceState {
    /// The turn of the run is in the journal.
    Accepted,
    Done,
    Failed,
    /// The host did not run at that time.
    Missed,
    /// The run before was not over.
    Skipped,
}

/// The times of a task.
#[derive(Debug)]
pub(super) enum Times {
    Cron(Box<CronExpr>),
    Once(Timestamp),
}

/// The next step about a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// No time is left.
    Never,
    /// The task is due at this time.
    At(Timestamp),
    /// The task is due now, for this time; by so much too late, if it is late.
    Now(Timestamp, Option<Duration>),
    /// Times up to this one passed while the host did not run.
    Missed(Timestamp),
}

impl ScheduledTask {
    /// Returns the times of the task; `None` for an expression that cannot be read, as after an edit by hand.
    pub(super) fn times(&self) -> Option<Times> {
        if let Ok(time) = self.cron_expression.parse::<jiff::Timestamp>() {
            let millis = u64::try_from(time.as_millisecond()).ok()?;
            return Some(Times::Once(Timestamp::from_millis(millis)));
        }
        let cron = CronExpr::parse(&self.cron_expression).ok()?;
        Some(Times::Cron(Box::new(cron)))
    }

    /// Returns the next step about the task at the time `now`.
    pub(super) fn due(&self, now: Timestamp, zone: &TimeZone) -> Due {
        let Some(times) = self.times().filter(|_| !self.is_paused) else {
            return Due::Never;
        };
        let after = self.last.as_ref().map_or(self.created_at, |last| last.due);
        let next = match &times {
            Times::Once(time) => Some(*time).filter(|time| self.last.is_none() && *time >= self.created_at),
            Times::Cron(_) if self.run_once && self.last.is_some() => None,
            Times::Cron(cron) => cron.next_after(after, zone),
        };
        match next {
            None => Due::Never,
            Some(next) if next > now => Due::At(next),
            Some(next) => self.due_now(&times, next, now, zone),
        }
    }

    /// Returns the step about a time that has come. Of several times that have passed the last one counts.
    fn due_now(&self, times: &Times, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Due {
        let max = if self.run_once { LATE_ONCE } else { LATE };
        let earliest = Timestamp::from_millis(now.as_millis().saturating_sub(max.as_millis() as u64));
        let mut last = first;
        if let Times::Cron(cron) = times
            && !self.run_once
        {
            // From the beginning of the window on: what passed before is not counted one by one.
            let from = first.max(Timestamp::from_millis(earliest.as_millis().saturating_sub(1)));
            let mut next = cron.next_after(from, zone);
            while let Some(time) = next.filter(|time| *time <= now) {
                last = time;
                next = cron.next_after(time, zone);
            }
        }
        if last < earliest {
            return Due::Missed(now);
        }
        let late = now.since(last);
        Due::Now(last, (late > TOLERANCE).then_some(late))
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A time of the file that may be missing.
mod optional_time {
    use rockbot_core::{Timestamp, rfc3339};
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Time(#[serde(with = "rfc3339")] Timestamp);

    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => rfc3339::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<Time>::deserialize(deserializer)?.map(|time| time.0))
    }
}
