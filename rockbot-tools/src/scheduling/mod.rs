//! Scheduled tasks: messages that the agent gets at set times, and answers to its user.
//!
//! Schedules (`rockbot-tools/src/scheduling`). One task of the host sleeps until the next due
//! time by the wall clock (`Clock::sleep_until`). A due time is a turn whose message id follows
//! from the task's creation and that time, so a second start is the same turn, whatever was
//! written (`run.rs`). The state of the last time (due, accepted, done, failed, missed, skipped)
//! is in `scheduled-tasks.json`, in the original's form; next times are computed, never stored,
//! and cached with the zone that they were computed for. Times that passed are found by bisection
//! (`times.rs`). A change of the file holds the lock `scheduled-tasks.lock`, from the latest
//! contents to the write, with the start of turns in between (`store.rs`): of two processes, only
//! the first starts the turn of a time. If it is killed before the write, the lock is free and
//! the next process starts the same turn: over one journal it runs once, over two at least once.
//! Overlap is judged by the runs of the own process. An edit by hand is noticed by time and
//! length of the file; a task whose expression was edited begins anew, so times of the new
//! expression before the edit are not missed. `cron/` computes civil times with the `cron` crate,
//! in a pretended UTC, and jiff maps them to instants of the user's zone: neither chrono nor the
//! crate's zone rules leave that folder.

mod cron;
mod cron_times;
mod define;
mod directive;
mod error;
mod heartbeat;
mod policy;
mod run;
mod scheduler;
mod schedules;
mod shared;
mod store;
mod task;
mod task_info;
mod times;
mod tools;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::files::DataFolder;
use rockbot_core::store::RulesStore;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::turn::TurnRunner;
use tokio::sync::{Mutex, Notify};

pub use cron_times::CronTimes;
pub use error::ScheduleError;
use heartbeat::HeartbeatPatrol;
pub use policy::{Misfire, Overlap};
use scheduler::{Scheduler, Shared};
pub use schedules::{NewTask, Schedules};
use store::TaskStore;
pub use task_info::{LastRun, TaskInfo};

/// Tools that let a model schedule tasks, `schedule_task`, `list_scheduled_tasks`,
/// `cancel_scheduled_task` and `run_scheduled_task`, the tasks of the program ([`Schedules`]),
/// and the scheduler that runs them.
///
/// A task has a cron expression of 5 or 6 fields in the user's time zone, an interval (`@every
/// 90s`), or runs once at a plain time. When it is due, its description is a message to the
/// agent, in the session `patrol/{name}`, and the answer is announced to the user
/// (`Agent::announcements`). The turn of a time has an id that follows from the task and the
/// time: it runs once, also if the process ends in between. [`Misfire`] decides about times that
/// pass while the host does not run, and [`Overlap`] about times when the run before is not over.
/// A task that fails five times in a row is paused, and the user is told.
///
/// The instructions for the runs of a task are the file `{name}.md` of the data folder, for tasks
/// of the principal `local`, and its directive, which its runs keep with `update_task_directive`
/// and `edit_task_directive`.
///
/// The tasks are kept in `scheduled-tasks.json` of the data folder, in the form of the original
/// RockBot. An edit of the file counts within five seconds; while it cannot be read, the tasks
/// stay as they were. Processes that share the file take turns by a lock beside it, so that a
/// single process starts the turn of a time. With a database that processes share
/// ([`SharedDocuments`](rockbot_core::store::SharedDocuments)), the tasks are a document there, and there is no file. A task that is scheduled in a conversation with
/// untrusted text needs an endorsement, and its runs are labelled as the conversation was.
///
/// | setting | default |
/// |---|---|
/// | `AgentHost.TimeZone`: zone of users who have not set their own | that of the machine |
/// | `HeartbeatPatrol.Enabled`: the task `heartbeat-patrol`, which checks what waits for the user | with any setting there |
/// | `HeartbeatPatrol.CronExpression`: its times | `*/30 * * * *` |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::scheduling::Scheduling;
///
/// // A host calls this for `.add(Scheduling::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// Scheduling::new().declare(&mut declarations)?;
/// assert_eq!(declarations.merge().tools.len(), 6);
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Scheduling {
    store: Option<TaskStore>,
    zone_name: Option<String>,
    zone: Option<TimeZone>,
    patrol_times: Option<String>,
    patrol: Option<HeartbeatPatrol>,
    shared: Shared,
}

impl Scheduling {
    /// Creates the tools and the scheduler.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time zone of users who have not set their own, by its IANA name. Default the setting
    /// `AgentHost.TimeZone`, else the zone of this machine. An unknown name is an error of the host's
    /// `build`.
    ///
    /// ```
    /// use rockbot_tools::scheduling::Scheduling;
    ///
    /// let scheduling = Scheduling::new().with_time_zone("Europe/Oslo");
    /// ```
    pub fn with_time_zone(mut self, name: impl Into<String>) -> Self {
        self.zone_name = Some(name.into());
        self
    }

    /// Adds the task `heartbeat-patrol` of the principal `local`, with these times: it checks
    /// calendar, email, plans and schedules, as the file `heartbeat-patrol.md` of the data folder
    /// says. Default: with the section `HeartbeatPatrol` alone. A wrong expression is an error of the
    /// host's `build`.
    ///
    /// ```
    /// use rockbot_tools::scheduling::Scheduling;
    ///
    /// let scheduling = Scheduling::new().with_heartbeat_patrol("0 */6 * * *");
    /// ```
    pub fn with_heartbeat_patrol(mut self, cron: impl Into<String>) -> Self {
        self.patrol_times = Some(cron.into());
        self
    }
}

#[async_trait]
impl Subsystem for Scheduling {
    fn name(&self) -> &str {
        "scheduling"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let named: Option<String> = config.section("AgentHost")?.get("TimeZone")?;
        self.zone = match self.zone_name.take().or(named) {
            Some(name) => Some(TimeZone::get(&name)?),
            None => None,
        };
        self.patrol = HeartbeatPatrol::read(self.patrol_times.take(), &config)?;
        self.store = Some(TaskStore::of(declarations.parts())?);
        declarations.provide(Arc::new(Schedules::new(self.shared.clone())));
        declarations.context_source(directive::Briefing);
        let tools = tools::tools(&self.shared);
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        let cost = PartCost::on("scheduling").with_switch("leave out `.add(Scheduling)`");
        declarations.cost(cost.with_tools(names).with_model_calls("those of each run of a task"));
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let scheduler = Arc::new(Scheduler {
            store: Mutex::new(self.store.unwrap_or_default()),
            clock: parts.clock().clone(),
            zone: self.zone.unwrap_or_else(TimeZone::system),
            rules: parts.get::<dyn RulesStore>(),
            turns: parts
                .get::<dyn TurnRunner>()
                .ok_or("the host does not run turns for its parts")?,
            profile: parts.data_dir().map(DataFolder::unheld),
            watched: std::sync::Mutex::default(),
            changed: Notify::new(),
        });
        if let Err(error) = scheduler.store.lock().await.change(parts.clock().now()).await {
            tracing::warn!(%error, "scheduled tasks not read yet; they are read again");
        }
        if let Some(patrol) = self.patrol {
            patrol.apply(&scheduler).await?;
        }
        // A subsystem starts once.
        let _ = self.shared.set(scheduler.clone());
        let (running, task) = RunningTask::new(|stop| scheduler.run(stop));
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

/// Copies the tasks of all principals from one host to another one, and returns their number. Each
/// replaces the task of its name. Neither host has to be started, or to have a [`Scheduling`].
///
/// # Errors
///
/// Returns an error if the tasks cannot be read or written; none is copied then.
pub async fn copy_tasks(from: &Parts, to: &Parts) -> Result<usize, BoxError> {
    let (mut from, now) = (TaskStore::of(from)?, to.clock().now());
    let mut to = TaskStore::of(to)?;
    let before = from.change(now).await?;
    let mut change = to.change(now).await?;
    for task in before.all() {
        change.put(task.clone());
    }
    change.commit().await?;
    Ok(before.all().len())
}
