//! The tasks of the program itself, without a model.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::turn::{Budget, ResultMode};
use rockbot_core::{Principal, Timestamp, TurnId};

use super::define::Definition;
use super::error::ScheduleError;
use super::policy::{Misfire, Overlap, Policies};
use super::scheduler::{Scheduler, Shared};
use super::task_info::TaskInfo;
use super::times::every;

/// The scheduled tasks of a principal, for the program around a host.
///
/// A host with [`Scheduling`](super::Scheduling) has it among its parts:
/// `host.parts().require::<Schedules>()`. It works on the same tasks as the tools of the model,
/// and begins with the tasks of the principal `local`.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::BoxError;
/// use rockbot_tools::scheduling::{Misfire, Schedules};
///
/// async fn plan(schedules: &Schedules) -> Result<(), BoxError> {
///     // At each start of the program: tasks that are defined alike go on.
///     schedules.every("stretch", Duration::from_secs(90 * 60), "Tell me to stretch.").await?;
///     schedules.schedule("report", "0 9 * * MON-FRI", "Write the daily report.").misfire(Misfire::Skip).await?;
///     schedules.of("ann").schedule("tea", "in 20 minutes", "The tea is ready.").once().await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Schedules {
    shared: Shared,
    principal: Principal,
}

impl Schedules {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            principal: Principal::default(),
        }
    }

    /// Returns the tasks of another principal.
    #[must_use]
    pub fn of(&self, principal: impl Into<Principal>) -> Self {
        Self {
            shared: self.shared.clone(),
            principal: principal.into(),
        }
    }

    /// Schedules a task: at each time of the cron expression the agent gets `prompt` as a message. A
    /// task of the same name is replaced, unless it is defined alike. Awaiting it stores the task.
    pub fn schedule(&self, name: impl Into<String>, cron: impl Into<String>, prompt: impl Into<String>) -> NewTask {
        NewTask {
            shared: self.shared.clone(),
            definition: Definition {
                name: name.into(),
                when: cron.into(),
                description: prompt.into(),
                run_once: false,
                principal: self.principal.clone(),
                label: None,
                policies: None,
            },
            policies: Policies::default(),
        }
    }

    /// Schedules a task at intervals of at least a second; the first interval begins now. In the file
    /// and for models the expression is `@every 90s`.
    pub fn every(&self, name: impl Into<String>, interval: Duration, prompt: impl Into<String>) -> NewTask {
        self.schedule(name, every(interval), prompt)
    }

    /// Cancels a task. Returns `false` if the principal has none of this name. A run that has begun
    /// goes on.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is not started, or the tasks cannot be written.
    pub async fn cancel(&self, name: &str) -> Result<bool, ScheduleError> {
        self.scheduler()?.cancel(&self.principal, name).await
    }

    /// Runs a task now, also a paused task, and returns the turn. For a task that runs once it is the
    /// only run.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no task of this name, its run before is not over and not to be
    /// cancelled for the next run, or the turn is not accepted.
    pub async fn run_now(&self, name: &str) -> Result<TurnId, ScheduleError> {
        self.scheduler()?.run_now(&self.principal, name).await
    }

    /// Returns the tasks of the principal, in the order of the file.
    ///
    /// # Errors
    ///
    /// Returns [`ScheduleError::NotStarted`] before the host has started.
    pub async fn tasks(&self) -> Result<Vec<TaskInfo>, ScheduleError> {
        let scheduler = self.scheduler()?;
        let zone = scheduler.zone_of(&self.principal).await;
        let now = scheduler.clock.now();
        let store = scheduler.store.lock().await;
        let own = store.all().iter().filter(|task| task.principal == self.principal);
        Ok(own.map(|task| TaskInfo::of(task, now, &zone)).collect())
    }

    fn scheduler(&self) -> Result<&Arc<Scheduler>, ScheduleError> {
        self.shared.get().ok_or(ScheduleError::NotStarted)
    }
}

/// A task to be scheduled, which is stored by awaiting it. The result is the time of its next
/// run.
///
/// # Errors
///
/// Awaiting it returns an error if the host is not started, the name or the times are invalid, or
/// the task cannot be written.
#[derive(Debug)]
#[must_use = "a task is scheduled when it is awaited"]
pub struct NewTask {
    shared: Shared,
    definition: Definition,
    policies: Policies,
}

impl NewTask {
    /// Makes it a task that runs once. Its time can be a plain one, such as `2026-12-24T18:00` or `in
    /// 2 hours`.
    pub fn once(mut self) -> Self {
        self.definition.run_once = true;
        self
    }

    /// Sets the policy for times that passed while the host did not run. Default
    /// [`Misfire::OnceLate`] within an hour, or seven days for a task that runs once.
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.policies.misfire = Some(misfire);
        self
    }

    /// Sets the policy for times when the run before is not over. Default [`Overlap::Skip`].
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.policies.overlap = overlap;
        self
    }

    /// Sets the range of the delay that spreads tasks of the same time, in whole seconds. The delay
    /// of a task follows from its name. Default none.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.policies.jitter_seconds = u32::try_from(jitter.as_secs()).unwrap_or(u32::MAX);
        self
    }

    /// Sets the limits of each run. Default: the limits of the host.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.policies.budget = Some(budget);
        self
    }

    /// Sets the form of the results of tools in answers. Default: the form of the model's behavior.
    pub fn result_mode(mut self, result_mode: ResultMode) -> Self {
        self.policies.result_mode = Some(result_mode);
        self
    }
}

impl IntoFuture for NewTask {
    type Output = Result<Timestamp, ScheduleError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let scheduler = self.shared.get().ok_or(ScheduleError::NotStarted)?;
            let policies = Some(self.policies);
            scheduler
                .define(Definition {
                    policies,
                    ..self.definition
                })
                .await
        })
    }
}
