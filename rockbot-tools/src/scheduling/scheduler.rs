//! The scheduler: it sleeps until the next task is due, and runs the due tasks.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::files::DataFolder;
use rockbot_core::store::RulesStore;
use rockbot_core::support::loggable;
use rockbot_core::tool::ToolError;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{Clock, Principal, Timestamp, TurnId};
use tokio::sync::{Mutex, Notify};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::error::ScheduleError;
use super::store::TaskStore;
use super::task::{Armed, Due, OccurrenceState, ScheduledTask};

/// Pause before a task is tried again whose turn was not accepted, or whose state was not written.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Interval between two looks at the version of the tasks.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after which the next times are compared with the zones of their users, who may have
/// changed them.
const ZONE_INTERVAL: Duration = Duration::from_secs(60);

/// Number of tasks whose next times are computed before other work has a turn.
const PASS: usize = 100;

/// The parts that the scheduler and the tools share.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) store: Mutex<TaskStore>,
    pub(super) clock: Arc<dyn Clock>,
    /// The zone of principals who have not set their own.
    pub(super) zone: TimeZone,
    pub(super) rules: Option<Arc<dyn RulesStore>>,
    pub(super) turns: Arc<dyn TurnRunner>,
    /// The folder with the instructions for tasks, `{name}.md`.
    pub(super) profile: Option<DataFolder>,
    /// The runs whose ends this process waits for.
    pub(super) watched: std::sync::Mutex<HashSet<TurnId>>,
    /// Notified when a task was added, replaced or removed, and when a run has ended.
    pub(super) changed: Notify,
}

/// The scheduler of the tools and the program, set when the host starts.
pub(super) type Shared = Arc<OnceLock<Arc<Scheduler>>>;

/// Returns the scheduler, for a tool.
pub(super) fn started(shared: &Shared) -> Result<&Arc<Scheduler>, ToolError> {
    let starting = || ToolError::execution_failed(ScheduleError::NotStarted.to_string());
    shared.get().ok_or_else(starting)
}

/// The zones of principals, looked up once in a pass over all tasks.
#[derive(Debug, Default)]
struct Zones(HashMap<Principal, TimeZone>);

impl Zones {
    async fn of(&mut self, principal: &Principal, scheduler: &Scheduler) -> TimeZone {
        if let Some(zone) = self.0.get(principal) {
            return zone.clone();
        }
        let zone = scheduler.zone_of(principal).await;
        self.0.insert(principal.clone(), zone.clone());
        zone
    }
}

impl Scheduler {
    /// Runs tasks when they are due, until `stop` fires.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        stop.run_until_cancelled(self.work()).await;
    }

    async fn work(self: Arc<Self>) {
        self.watch_open(self.store.lock().await.all(), self.clock.now());
        loop {
            let changed = self.changed.notified();
            let next = self.run_due().await;
            tokio::select! {
                () = self.come(next) => {}
                () = changed => {}
                () = self.edited() => {}
                () = sleep(ZONE_INTERVAL) => {}
            }
        }
    }

    /// Waits for a time, forever if there is none.
    async fn come(&self, time: Option<Timestamp>) {
        match time {
            Some(time) => self.clock.sleep_until(time).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the tasks are edited by a person or another process.
    async fn edited(&self) {
        loop {
            sleep(LOOK_INTERVAL).await;
            if self.store.lock().await.is_stale().await {
                return;
            }
        }
    }

    /// Returns the zone of a principal's tasks.
    pub(super) async fn zone_of(&self, principal: &Principal) -> TimeZone {
        let stored = match &self.rules {
            Some(rules) => rules.time_zone(principal).await.ok().flatten(),
            None => None,
        };
        let zone = stored.and_then(|name| TimeZone::get(&name).ok());
        zone.unwrap_or_else(|| self.zone.clone())
    }

    /// Runs the due tasks, and returns the time when the next task is due.
    async fn run_due(self: &Arc<Self>) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut store = self.store.lock().await;
        let next = self.arm(store.all_mut(), now).await;
        if !store.is_stale().await && next.is_none_or(|next| next > now) {
            return next;
        }
        let retry = now.after(RETRY_PAUSE);
        if let Err(error) = self.step_all(&mut store, now).await {
            tracing::error!(error = %loggable(&error.to_string()), "scheduled tasks not run yet; they are tried again");
            return Some(retry);
        }
        self.watch_open(store.all(), now);
        match self.arm(store.all_mut(), now).await {
            // A task that could not run now does not keep other tasks from their times.
            Some(next) if next <= now => first_after(store.all(), now).into_iter().chain([retry]).min(),
            next => next,
        }
    }

    /// Computes the next times of tasks where they are not known, and returns the first.
    async fn arm(&self, tasks: &mut [ScheduledTask], now: Timestamp) -> Option<Timestamp> {
        let mut zones = Zones::default();
        let mut first: Option<Timestamp> = None;
        for (index, task) in tasks.iter_mut().enumerate() {
            if index % PASS == PASS - 1 {
                // Other tasks of the process work in between: the first pass over many tasks takes a while.
                tokio::task::yield_now().await;
            }
            let zone = zones.of(&task.principal, self).await;
            let armed = task.armed.take().filter(|armed| armed.holds(&zone, now));
            let armed = armed.unwrap_or_else(|| Armed {
                next: task.due(now, &zone).time(now),
                zone,
                since: now,
            });
            first = first.into_iter().chain(armed.next).min();
            task.armed = Some(armed);
        }
        first
    }

    /// Runs the tasks that are due, and notes their runs in one change. No other process runs them
    /// meanwhile; if this process is killed before the change is written, the next process starts the
    /// same turns.
    async fn step_all(self: &Arc<Self>, store: &mut TaskStore, now: Timestamp) -> Result<(), ScheduleError> {
        let mut change = store.change(now).await?;
        for (index, zone, due) in self.due_tasks(change.all(), now).await {
            let Some(mut task) = change.all().get(index).cloned() else {
                continue;
            };
            let step = self.step(&mut task, due).await.unwrap_or_else(|error| {
                let name = loggable(&task.name);
                let error = error.to_string();
                tracing::error!(task = %name, error = %loggable(&error), "scheduled task not run yet; it is tried again");
                Step::Nothing
            });
            // The end of its run wakes a task that waits; until then it has no next time.
            let waits = step == Step::Waits || task.waits();
            let next = None;
            let since = now;
            task.armed = waits.then_some(Armed { next, zone, since });
            change.set(index, task, step == Step::Changed);
        }
        change.commit().await
    }

    /// Returns the places of the due tasks, with their zones and steps.
    async fn due_tasks(&self, tasks: &[ScheduledTask], now: Timestamp) -> Vec<(usize, TimeZone, Due)> {
        let mut zones = Zones::default();
        let mut due = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let zone = zones.of(&task.principal, self).await;
            let armed = task.armed.as_ref().filter(|armed| armed.holds(&zone, now));
            if armed.is_none_or(|armed| armed.next.is_some_and(|next| next <= now)) {
                let of_task = task.due(now, &zone);
                due.push((index, zone, of_task));
            }
        }
        due
    }
}

/// Returns the first of the computed times after `now`.
fn first_after(tasks: &[ScheduledTask], now: Timestamp) -> Option<Timestamp> {
    let times = tasks.iter().filter_map(|task| task.armed.as_ref()?.next);
    times.filter(|time| *time > now).min()
}

/// The effect of a step on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The task is to be written.
    Changed,
    /// The task waits for the end of its run.
    Waits,
    /// The task is not due.
    Nothing,
}

impl ScheduledTask {
    /// Returns `true` if a time of the task waits for the end of the run before.
    fn waits(&self) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.state == OccurrenceState::Due && last.turn.is_some())
    }
}
