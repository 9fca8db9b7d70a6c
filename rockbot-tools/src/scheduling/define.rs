//! The definition of a task, by a model or by the program.

use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::store::StorePath;
use rockbot_core::trust::Label;
use rockbot_core::{Principal, Timestamp};

use super::cron::{instant, parse_time};
use super::error::{MAX_TASKS, ScheduleError};
use super::policy::{Misfire, Overlap};
use super::scheduler::Scheduler;
use super::task::{Due, SESSION, ScheduledTask};
use super::times::{Times, every};

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;

/// Maximum length of a description, and of the instructions that runs keep, in bytes.
pub(super) const MAX_DESCRIPTION: usize = 16 << 10;

/// A task as it is asked for.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// A cron expression or an interval; for a run-once task also a time.
    pub(super) when: String,
    pub(super) description: String,
    pub(super) run_once: bool,
    pub(super) principal: Principal,
    pub(super) label: Option<Label>,
    pub(super) misfire: Option<Misfire>,
    pub(super) overlap: Overlap,
    pub(super) jitter: Duration,
}

impl Scheduler {
    /// Schedules a task, and returns the time at which it runs next. A task of the same name is replaced, but for the
    /// instructions that its runs keep; one that is defined alike goes on.
    pub(super) async fn define(&self, definition: Definition) -> Result<Timestamp, ScheduleError> {
        check(&definition)?;
        let zone = self.zone_of(&definition.principal).await;
        let now = self.clock.now();
        let cron_expression = expression(&definition, now, &zone)?;
        let written = definition.when.clone();
        let mut task = task(definition, cron_expression, now);
        let Due::At(next) = task.due(now, &zone) else {
            return Err(ScheduleError::Invalid(format!(
                "`{written}` is never due again: name a later time"
            )));
        };
        let mut store = self.store.lock().await;
        let mut change = store.change(now).await?;
        if let Some(old) = change.find(&task.principal, &task.name) {
            let goes_on = match old.due(now, &zone) {
                Due::At(next) => Some(next),
                Due::Now(..) | Due::Missed(_) | Due::SetBack(_) => Some(now),
                Due::Never => None,
            };
            if let Some(next) = goes_on.filter(|_| old.is_defined_as(&task)) {
                return Ok(next);
            }
            task.directive.clone_from(&old.directive);
        } else if change
            .all()
            .iter()
            .filter(|other| other.principal == task.principal)
            .count()
            >= MAX_TASKS
        {
            return Err(ScheduleError::TooMany);
        }
        change.put(task);
        change.commit()?;
        self.changed.notify_one();
        Ok(next)
    }

    /// Cancels a task. Returns `false` if the principal has none of this name.
    pub(super) async fn cancel(&self, principal: &Principal, name: &str) -> Result<bool, ScheduleError> {
        let mut store = self.store.lock().await;
        let mut change = store.change(self.clock.now()).await?;
        let is_removed = change.remove(principal, name);
        change.commit()?;
        self.changed.notify_one();
        Ok(is_removed)
    }
}

fn task(definition: Definition, cron_expression: String, now: Timestamp) -> ScheduledTask {
    ScheduledTask {
        name: definition.name.trim().to_owned(),
        cron_expression,
        description: definition.description.trim().to_owned(),
        created_at: now,
        last_fired_at: None,
        run_once: definition.run_once,
        misfire: definition.misfire,
        overlap: definition.overlap,
        jitter_seconds: u32::try_from(definition.jitter.as_secs()).unwrap_or(u32::MAX),
        directive: None,
        principal: definition.principal,
        label: definition.label,
        failures: 0,
        is_paused: false,
        last: None,
        other: serde_json::Map::new(),
        armed: None,
    }
}

fn check(definition: &Definition) -> Result<(), ScheduleError> {
    let name = definition.name.trim();
    let is_name =
        !name.is_empty() && name.chars().count() <= MAX_NAME && StorePath::new(&format!("{SESSION}{name}")).is_ok();
    let problem = if !is_name || name.contains('/') {
        format!("`name` has 1 to {MAX_NAME} characters and no slash, such as `water-plants`")
    } else if definition.description.trim().is_empty() {
        "`description` is empty: describe the task".to_owned()
    } else if definition.description.len() > MAX_DESCRIPTION {
        format!("`description` has at most {MAX_DESCRIPTION} bytes")
    } else {
        return Ok(());
    };
    Err(ScheduleError::Invalid(problem))
}

/// Returns the expression as the file keeps it: a plain time becomes an instant.
fn expression(definition: &Definition, now: Timestamp, zone: &TimeZone) -> Result<String, ScheduleError> {
    let when = definition.when.trim();
    let refused = |error: &dyn std::fmt::Display| Err(ScheduleError::Invalid(error.to_string()));
    let problem = match Times::parse(when) {
        Ok(Times::Cron(cron)) => return Ok(cron.as_str().to_owned()),
        Ok(Times::Every(interval)) => return Ok(every(interval)),
        Ok(Times::Once(_)) => None,
        Err(error) => Some(error),
    };
    match (parse_time(when, now, zone), problem) {
        (Ok(time), _) if definition.run_once => Ok(instant(time).to_string()),
        (Err(error), _) if definition.run_once => refused(&error),
        (Err(_), Some(error)) => refused(&error),
        _ => refused(&"a plain time is for tasks that run once: set `run_once`"),
    }
}
