//! Scheduled tasks, as the file keeps them.

use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::support::Digest;
use rockbot_core::trust::Label;
use rockbot_core::{Principal, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::policy::{Misfire, Policies, is_default};
use super::times::Times;

/// Beginning of the sessions of tasks, and of their namespaces in working memory.
pub(super) const SESSION: &str = "patrol/";

/// Maximum lateness of a run of a recurring task; a time that was missed by more is not run.
const LATE: Duration = Duration::from_secs(60 * 60);

/// Maximum lateness of a run-once task.
const LATE_ONCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Lateness from which on a run counts as late, and says so.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Maximum number of times that [`Misfire::All`] makes up for.
const MAX_LATE_RUNS: u32 = 100;

/// A task and the outcome of its last time. All but name, expression and description may be left
/// out of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScheduledTask {
    pub(super) name: String,
    /// A cron expression, or the time of a run-once task.
    pub(super) cron_expression: String,
    /// The message of each run.
    pub(super) description: String,
    /// The beginning of its times, and the revision that is part of their identity. The epoch where
    /// the file has none.
    #[serde(default, with = "rockbot_core::rfc3339")]
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_time")]
    pub(super) last_fired_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) run_once: bool,
    #[serde(flatten)]
    pub(super) policies: Policies,
    /// Instructions that the runs of the task keep for the next ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) directive: Option<String>,
    /// The principal that the task belongs to.
    #[serde(default)]
    pub(super) principal: Principal,
    /// Label of the texts that the task was made of, if others wrote some of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<Label>,
    /// Number of runs that failed since the last run that did not fail.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) failures: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) is_paused: bool,
    /// The last time that was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Occurrence>,
    /// Members that others wrote, which stay.
    #[serde(flatten)]
    pub(super) other: serde_json::Map<String, serde_json::Value>,
    /// The next time, since a pass over all tasks must be cheap.
    #[serde(skip)]
    pub(super) armed: Option<Armed>,
}

/// The next time of a task, as long as it holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Armed {
    pub(super) next: Option<Timestamp>,
    /// The zone of the computation.
    pub(super) zone: TimeZone,
    /// The time of the computation.
    pub(super) since: Timestamp,
}

impl Armed {
    /// Returns `true` unless the user moved to another zone, or the clock was set back.
    pub(super) fn holds(&self, zone: &TimeZone, now: Timestamp) -> bool {
        self.zone == *zone && self.since <= now
    }
}

/// A time when a task was due, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Occurrence {
    #[serde(with = "rockbot_core::rfc3339")]
    pub(super) due: Timestamp,
    pub(super) state: OccurrenceState,
    /// The turn of the run, or of the run before that it met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<TurnId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OccurrenceState {
    /// The time waits for the end of the run before.
    Due,
    /// The turn of the run is in the journal.
    Accepted,
    Done,
    Failed,
    /// The host did not run at that time.
    Missed,
    /// The run before was not over.
    Skipped,
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
    /// The clock was ahead when the task ran or was created, and is set back to this time.
    SetBack(Timestamp),
}

impl ScheduledTask {
    /// Returns the session of the task's runs, which is the namespace of its notes, too.
    pub(super) fn session(&self) -> String {
        format!("{SESSION}{}", self.name)
    }

    /// Returns the times of the task; `None` for an expression that cannot be read, as after an edit
    /// by hand.
    pub(super) fn times(&self) -> Option<Times> {
        Times::parse(&self.cron_expression).ok()
    }

    /// Returns `true` if this is the task of this name, whatever its case.
    pub(super) fn is_named(&self, principal: &Principal, name: &str) -> bool {
        let folded = self.name.chars().flat_map(char::to_lowercase);
        self.principal == *principal && folded.eq(name.chars().flat_map(char::to_lowercase))
    }

    /// Returns `true` if the other task is defined alike: by the same caller, with the same policies.
    pub(super) fn is_defined_as(&self, other: &Self) -> bool {
        self.cron_expression == other.cron_expression
            && self.description == other.description
            && self.label == other.label
            && self.run_once == other.run_once
            && self.policies == other.policies
    }

    /// Returns `true` if another state of the task has the same next time.
    pub(super) fn has_next_of(&self, other: &Self) -> bool {
        self.run_once == other.run_once
            && self.policies == other.policies
            && self.is_paused == other.is_paused
            && self.last == other.last
    }

    /// Returns the next step about the task at the time `now`.
    pub(super) fn due(&self, now: Timestamp, zone: &TimeZone) -> Due {
        let Some(times) = self.times().filter(|_| !self.is_paused) else {
            return Due::Never;
        };
        let after = self
            .last
            .as_ref()
            .map_or(self.created_at, |last| last.due.max(self.created_at));
        if after > now {
            return Due::SetBack(now);
        }
        let delay = self.delay();
        // The due time of a delayed task that is due now.
        let now = before(now, delay);
        if let Some(last) = self.last.as_ref().filter(|last| last.state == OccurrenceState::Due) {
            return Due::now(last.due, now);
        }
        let next = match &times {
            _ if self.run_once && self.last.is_some() => None,
            times => times.next_after(after, self.created_at, zone),
        };
        match next {
            None => Due::Never,
            Some(next) if next > now => Due::At(next.after(delay)),
            Some(next) => self.due_now(&times, next, now, zone),
        }
    }

    /// Returns the step about times that have come; `first` is the first of them.
    fn due_now(&self, times: &Times, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Due {
        let within = match self.policies.misfire {
            Some(Misfire::All { max }) => {
                let earliest = self.last_times(times, first, now, zone, max.clamp(1, MAX_LATE_RUNS));
                return Due::now(earliest, now);
            }
            Some(Misfire::OnceLate { within }) => within.max(TOLERANCE),
            Some(Misfire::Skip) => TOLERANCE,
            None if self.run_once => LATE_ONCE,
            None => LATE,
        };
        let earliest = before(now, within);
        let recent = if self.run_once || first >= earliest {
            Some(first)
        } else {
            times.next_after(before(earliest, Duration::from_millis(1)), self.created_at, zone)
        };
        match recent.filter(|recent| (earliest..=now).contains(recent)) {
            None => Due::Missed(now),
            Some(recent) => Due::now(self.last_times(times, recent, now, zone, 1), now),
        }
    }

    /// Returns the first of the last `max` times from `first` up to `now`.
    fn last_times(&self, times: &Times, first: Timestamp, now: Timestamp, zone: &TimeZone, max: u32) -> Timestamp {
        let mut time = first;
        let mut until = now;
        for _ in 0..max {
            if self.run_once || until < first {
                break;
            }
            time = times.last_until(first, until, self.created_at, zone);
            until = before(time, Duration::from_millis(1));
        }
        time
    }

    /// Lets the times after `now` count, which a clock that was ahead has hidden. Times that have run
    /// are the same turns, which do not run again.
    pub(super) fn set_back(&mut self, now: Timestamp) {
        self.created_at = self.created_at.min(now);
        if let Some(last) = &mut self.last {
            last.due = last.due.min(now);
        }
    }

    /// Returns the delay of the task: a share of its jitter that follows from its name, so that it is
    /// always the same.
    fn delay(&self) -> Duration {
        if self.policies.jitter_seconds == 0 {
            return Duration::ZERO;
        }
        let digest = Digest::of([&self.name]).short();
        let hash = digest
            .get(..12)
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .unwrap_or_default();
        Duration::from_secs(hash % u64::from(self.policies.jitter_seconds))
    }
}

impl Due {
    /// Returns the time of the step, `now` if it is due; `None` if there is none.
    pub(super) fn time(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::At(time) => Some(*time),
            Self::Now(..) | Self::Missed(_) | Self::SetBack(_) => Some(now),
            Self::Never => None,
        }
    }

    /// Returns the step about a time that runs at the time `now`.
    fn now(due: Timestamp, now: Timestamp) -> Self {
        let late = now.since(due);
        Self::Now(due, (late > TOLERANCE).then_some(late))
    }
}

/// Returns the time that is earlier by `duration`.
fn before(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_sub(duration))
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
