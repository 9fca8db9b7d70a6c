//! The definition of a task, by a model or by the program.

use jiff::tz::TimeZone;
use rockbot_core::store::StorePath;
use rockbot_core::trust::Label;
use rockbot_core::{Principal, Timestamp};

use super::cron::{instant, parse_time};
use super::error::{MAX_TASKS, ScheduleError};
use super::policy::Policies;
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
    /// The policies; `None` means the policies of the task that is replaced, which its user may have
    /// edited, or the defaults.
    pub(super) policies: Option<Policies>,
}

impl Scheduler {
    /// Schedules a task, and returns the time of its next run. A task of the same name is replaced,
    /// but for the instructions that its runs keep and policies that the definition leaves open. A
    /// task with the same definition goes on.
    pub(super) async fn define(&self, definition: Definition) -> Result<Timestamp, ScheduleError> {
        let now = self.clock.now();
        let keeps_policies = definition.policies.is_none();
        let (mut task, next, zone) = self.prepare(definition, now).await?;
        let mut store = self.store.lock().await;
        let mut change = store.change(now).await?;
        let mut own = change.all().iter().filter(|other| other.principal == task.principal);
        match change.find(&task.principal, &task.name) {
            None if own.nth(MAX_TASKS - 1).is_some() => return Err(ScheduleError::TooMany),
            None => {}
            Some(old) => {
                if keeps_policies {
                    task.policies.clone_from(&old.policies);
                }
                let goes_on = old.due(now, &zone).time(now).filter(|_| old.is_defined_as(&task));
                if let Some(next) = goes_on {
                    return Ok(next);
                }
                task.directive.clone_from(&old.directive);
            }
        }
        change.put(task);
        change.commit().await?;
        self.changed.notify_one();
        Ok(next)
    }

    /// Returns the task of a definition, the time of its next run, and its zone.
    pub(super) async fn prepare(
        &self,
        definition: Definition,
        now: Timestamp,
    ) -> Result<(ScheduledTask, Timestamp, TimeZone), ScheduleError> {
        check(&definition)?;
        let zone = self.zone_of(&definition.principal).await;
        let cron_expression = expression(&definition, now, &zone)?;
        let never = format!("`{}` is never due again: name a later time", definition.when);
        let task = task(definition, cron_expression, now);
        match task.due(now, &zone) {
            Due::At(next) => Ok((task, next, zone)),
            _ => Err(ScheduleError::Invalid(never)),
        }
    }

    /// Cancels a task. Returns `false` if the principal has none of this name.
    pub(super) async fn cancel(&self, principal: &Principal, name: &str) -> Result<bool, ScheduleError> {
        let mut store = self.store.lock().await;
        let mut change = store.change(self.clock.now()).await?;
        let is_removed = change.remove(principal, name);
        change.commit().await?;
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
        policies: definition.policies.unwrap_or_default(),
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
        (Err(error), _) if definition.run_once || when.starts_with("in ") => refused(&error),
        (Err(_), Some(error)) => refused(&error),
        _ => refused(&"a plain time is for tasks that run once: set `run_once`, in code `.once()`"),
    }
}
