//! Scheduled tasks as a program shows them.

use jiff::tz::TimeZone;
use rockbot_core::{Timestamp, TurnId};
use serde::Serialize;

use super::task::{Occurrence, OccurrenceState, ScheduledTask};

/// A scheduled task, as [`Schedules::tasks`](super::Schedules::tasks) lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskInfo {
    /// Name of the task.
    pub name: String,
    /// Times of the task: a cron expression, an interval, or the time of a task that runs once.
    pub when: String,
    /// Message of each run.
    pub prompt: String,
    /// `true` for a task that runs once.
    pub run_once: bool,
    /// `true` if the task was paused after failures.
    pub is_paused: bool,
    /// Time of the next run; `None` if none follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The last time that was due; `None` if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// The last time at which a task was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LastRun {
    /// Time at which the task was due.
    pub due: Timestamp,
    /// Outcome as a word: `due`, `accepted`, `done`, `failed`, `missed` or `skipped`.
    pub state: &'static str,
    /// Turn of the run, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

impl TaskInfo {
    pub(super) fn of(task: &ScheduledTask, now: Timestamp, zone: &TimeZone) -> Self {
        Self {
            name: task.name.clone(),
            when: task.cron_expression.clone(),
            prompt: task.description.clone(),
            run_once: task.run_once,
            is_paused: task.is_paused,
            next: task.due(now, zone).time(now),
            last: task.last.as_ref().map(LastRun::of),
        }
    }
}

impl LastRun {
    fn of(last: &Occurrence) -> Self {
        let state = match last.state {
            OccurrenceState::Due => "due",
            OccurrenceState::Accepted => "accepted",
            OccurrenceState::Done => "done",
            OccurrenceState::Failed => "failed",
            OccurrenceState::Missed => "missed",
            OccurrenceState::Skipped => "skipped",
        };
        Self {
            due: last.due,
            state,
            turn: last.turn.clone(),
        }
    }
}
