//! The runs of tasks: the turn of a time, and its end.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::context::{Origin, Priority};
use rockbot_core::store::StorePath;
use rockbot_core::support::loggable;
use rockbot_core::turn::{Announcement, TurnError, TurnQuery, TurnRequest};
use rockbot_core::{Principal, Timestamp, TurnId};
use tokio::time::sleep;

use super::error::ScheduleError;
use super::policy::{Misfire, Overlap};
use super::scheduler::{LOOK_INTERVAL, RETRY_PAUSE, Scheduler, Step};
use super::task::{Due, Occurrence, OccurrenceState, ScheduledTask};

/// Name of the program that sends the messages of tasks, which is part of their identity.
const SOURCE: &str = "rockbot.schedule";

/// Number of runs that fail in a row before a task is paused.
const MAX_FAILURES: u32 = 5;

/// Number of attempts to write the end of a run.
const MAX_ATTEMPTS: u32 = 20;

/// Time that journals keep the outcomes of turns.
const OUTCOMES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum length of the file with the instructions for a task, in bytes.
const MAX_INSTRUCTIONS: u64 = 256 << 10;

impl Scheduler {
    /// Takes the next step about a task: starts the turn of a time that is due, or notes why there is
    /// none.
    pub(super) async fn step(self: &Arc<Self>, task: &mut ScheduledTask, due: Due) -> Result<Step, TurnError> {
        let occurrence = match due {
            Due::Never | Due::At(_) => return Ok(Step::Nothing),
            Due::SetBack(now) => {
                task.set_back(now);
                return Ok(Step::Changed);
            }
            Due::Missed(due) => Occurrence::new(due, OccurrenceState::Missed),
            Due::Now(due, late) => match self.fire(task, due, late).await? {
                Some(occurrence) => occurrence,
                None => return Ok(Step::Waits),
            },
        };
        if occurrence.state == OccurrenceState::Accepted {
            task.last_fired_at = Some(self.clock.now());
            if let Some(turn) = occurrence.turn.clone() {
                // Also if the state is not written: the same time is the same turn when it is tried again.
                self.watch(task, turn, false);
            }
        }
        task.last = Some(occurrence);
        Ok(Step::Changed)
    }

    /// Runs a task now. It is a time of its own, besides the times of the task's expression.
    pub(super) async fn run_now(self: &Arc<Self>, principal: &Principal, name: &str) -> Result<TurnId, ScheduleError> {
        let mut store = self.store.lock().await;
        let now = self.clock.now();
        let mut change = store.change(now).await?;
        let found = change.find(principal, name).cloned();
        let mut task = found.ok_or_else(|| ScheduleError::NotFound(name.to_owned()))?;
        if task.policies.overlap != Overlap::CancelRunning && self.running(&task).is_some() {
            return Err(ScheduleError::Running(task.name));
        }
        self.step(&mut task, Due::Now(now, None)).await?;
        let turn = task.last.as_ref().and_then(|last| last.turn.clone());
        let turn = turn.ok_or_else(|| ScheduleError::Running(task.name.clone()))?;
        change.put(task);
        change.commit().await?;
        self.changed.notify_one();
        Ok(turn)
    }

    /// Starts the turn of a time, or returns the outcome of the time while the run before is not
    /// over; `None` if it waits. The id of the message follows from the task and the time, so a
    /// second start, as after a crash, is the same turn.
    async fn fire(
        &self,
        task: &ScheduledTask,
        due: Timestamp,
        late: Option<Duration>,
    ) -> Result<Option<Occurrence>, TurnError> {
        if let Some(running) = self.running(task) {
            let makes_up = late.is_some() && matches!(task.policies.misfire, Some(Misfire::All { .. }));
            let met = |state| {
                Ok(Some(Occurrence {
                    turn: Some(running.clone()),
                    ..Occurrence::new(due, state)
                }))
            };
            match task.policies.overlap {
                _ if makes_up => return Ok(None),
                Overlap::Skip => return met(OccurrenceState::Skipped),
                Overlap::QueueOne
                    if task
                        .last
                        .as_ref()
                        .is_some_and(|last| last.state == OccurrenceState::Due) =>
                {
                    return Ok(None);
                }
                Overlap::QueueOne => return met(OccurrenceState::Due),
                Overlap::CancelRunning => self.cancel_running(running),
            }
        }
        let turn = self.turns.start(self.request(task, due, late)).await?;
        Ok(Some(Occurrence {
            turn: Some(turn),
            ..Occurrence::new(due, OccurrenceState::Accepted)
        }))
    }

    /// Returns the turn of the task's last run if it is not over.
    fn running(&self, task: &ScheduledTask) -> Option<TurnId> {
        let turn = task.last.as_ref()?.turn.as_ref()?;
        let live = self
            .turns
            .live(&TurnQuery::default().with_principal(task.principal.clone()));
        live.into_iter().map(|live| live.turn).find(|live| live == turn)
    }

    /// Cancels a run for the next run, which waits for it in its session. It is not awaited, since
    /// its tools may want the tasks.
    fn cancel_running(&self, turn: TurnId) {
        let turns = self.turns.clone();
        tokio::spawn(async move {
            if let Err(error) = turns.cancel(&turn).await {
                tracing::warn!(%turn, %error, "run of a scheduled task not cancelled; it has ended, or the next one waits");
            }
        });
    }

    /// Waits for the ends of all runs that are not over: an earlier process or another one may have
    /// begun them, and this process may go on with them.
    pub(super) fn watch_open(self: &Arc<Self>, tasks: &[ScheduledTask], now: Timestamp) {
        for task in tasks {
            let open = task.last.as_ref().filter(|last| last.state.is_open());
            if let Some((last, turn)) = open.and_then(|last| Some((last, last.turn.clone()?))) {
                self.watch(task, turn, now.since(last.due) > OUTCOMES_KEPT);
            }
        }
    }

    /// Notes the end of a run, in a task of its own.
    fn watch(self: &Arc<Self>, task: &ScheduledTask, turn: TurnId, is_old: bool) {
        if !self.watched().insert(turn.clone()) {
            return;
        }
        let scheduler = self.clone();
        let principal = task.principal.clone();
        let name = task.name.clone();
        tokio::spawn(async move {
            if let Some(has_answer) = scheduler.end_of(&turn, is_old).await {
                scheduler.ended(&principal, &name, &turn, has_answer).await;
            }
            scheduler.watched().remove(&turn);
        });
    }

    /// Waits for the end of a run, and returns whether it has an answer; `None` if another process
    /// notes the end. If the journal does not know the turn, the run belongs to another process with a
    /// journal of its own, unless it is so old that the journal may have forgotten it.
    async fn end_of(&self, turn: &TurnId, is_old: bool) -> Option<bool> {
        loop {
            match self.turns.outcome(turn).await {
                Ok(outcome) => return Some(outcome.is_answer()),
                // Not resumed yet.
                Err(TurnError::Interrupted(_)) => sleep(Duration::from_secs(1)).await,
                // This process takes the turn over if the other one dies.
                Err(TurnError::Elsewhere(_)) if self.is_open(turn).await => sleep(LOOK_INTERVAL).await,
                Err(TurnError::Halted | TurnError::Elsewhere(_)) => return None,
                Err(TurnError::NotFound(_)) if !is_old => return None,
                Err(_) => return Some(false),
            }
        }
    }

    async fn is_open(&self, turn: &TurnId) -> bool {
        let store = self.store.lock().await;
        let mut last = store.all().iter().filter_map(|task| task.last.as_ref());
        last.any(|last| last.state.is_open() && last.turn.as_ref() == Some(turn))
    }

    fn watched(&self) -> MutexGuard<'_, HashSet<TurnId>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ended(&self, principal: &Principal, name: &str, turn: &TurnId, has_answer: bool) {
        for _ in 0..MAX_ATTEMPTS {
            match self.note_end(principal, name, turn, has_answer).await {
                Ok(Some(task)) if task.is_paused => self.tell_paused(&task, turn).await,
                Ok(_) => {}
                Err(error) => {
                    let name = loggable(name);
                    let error = error.to_string();
                    tracing::error!(task = %name, error = %loggable(&error), "end of a scheduled run not written yet");
                    sleep(RETRY_PAUSE).await;
                    continue;
                }
            }
            break;
        }
        self.changed.notify_one();
    }

    /// Writes the end of a run, and returns the task, or `None` if the run is no longer the task's
    /// last run.
    async fn note_end(
        &self,
        principal: &Principal,
        name: &str,
        turn: &TurnId,
        has_answer: bool,
    ) -> Result<Option<ScheduledTask>, ScheduleError> {
        let mut store = self.store.lock().await;
        let mut change = store.change(self.clock.now()).await?;
        let Some(mut task) = change.find(principal, name).cloned() else {
            return Ok(None);
        };
        let last = task.last.as_mut().filter(|last| last.turn.as_ref() == Some(turn));
        let Some(last) = last.filter(|last| last.state.is_open()) else {
            return Ok(None);
        };
        match last.state {
            OccurrenceState::Accepted if has_answer => last.state = OccurrenceState::Done,
            OccurrenceState::Accepted => last.state = OccurrenceState::Failed,
            // The time met the run, which is over now.
            _ => last.turn = None,
        }
        task.failures = if has_answer { 0 } else { task.failures + 1 };
        task.is_paused = !task.run_once && task.failures >= MAX_FAILURES;
        if task.run_once {
            change.remove(principal, name);
        } else {
            change.put(task.clone());
        }
        change.commit().await?;
        Ok(Some(task))
    }

    async fn tell_paused(&self, task: &ScheduledTask, turn: &TurnId) {
        let text = format!(
            "The scheduled task \"{}\" failed {} times in a row, and is paused. Schedule it again to go on.",
            task.name, task.failures
        );
        let announcement = Announcement::new(task.principal.clone(), task.session(), text).with_turn(turn.clone());
        if let Err(error) = self.turns.announce(&format!("paused-{turn}"), announcement).await {
            tracing::error!(task = %loggable(&task.name), %error, "user not told that a task is paused");
        }
    }

    fn request(&self, task: &ScheduledTask, due: Timestamp, late: Option<Duration>) -> TurnRequest {
        let mut text = task.description.clone();
        if let Some(late) = late {
            let minutes = late.as_secs() / 60;
            let reason = match task.last.as_ref().map(|last| last.state) {
                Some(OccurrenceState::Due) => "the run before was not over",
                _ => "the agent was not running",
            };
            text.push_str(&format!(
                "\n\n(This run is {minutes} minutes late: {reason} when it was due.)"
            ));
        }
        let id = format!("{}@{}", task.created_at.as_millis(), due.as_millis());
        let request = TurnRequest::new(task.session(), id, text)
            .with_principal(task.principal.clone())
            .with_source(SOURCE)
            .with_origin(Origin::Scheduled)
            .with_priority(Priority::Scheduled)
            .with_label(task.label.clone())
            .with_budget(task.policies.budget)
            .with_result_mode(task.policies.result_mode)
            // Each run stands for itself: a task of every minute would read all runs before it.
            .with_history(Vec::new())
            .with_namespace(StorePath::new(&task.session()).ok())
            .with_announced(true);
        match self.instructions(task) {
            Some(instructions) => request.with_instructions(instructions),
            None => request,
        }
    }

    /// Returns the instructions for the runs of a task: the file `{name}.md` beside the agent's
    /// profile, which the user writes, and the instructions that the runs keep.
    fn instructions(&self, task: &ScheduledTask) -> Option<String> {
        let profile = self.profile.as_ref().filter(|_| task.principal == Principal::default());
        let read = profile.map(|folder| folder.read(&format!("{}.md", task.name), MAX_INSTRUCTIONS));
        let written = read.and_then(|read| {
            let warn =
                |error: &_| tracing::warn!(task = %loggable(&task.name), %error, "instructions for a task not read");
            read.inspect_err(warn).ok().flatten()
        });
        let written = written.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        let parts: Vec<_> = written.into_iter().chain(task.directive.clone()).collect();
        Some(parts.join("\n\n")).filter(|text| !text.is_empty())
    }
}

impl Occurrence {
    fn new(due: Timestamp, state: OccurrenceState) -> Self {
        Self { due, state, turn: None }
    }
}

impl OccurrenceState {
    /// Returns `true` if the turn of the occurrence may not be over.
    fn is_open(self) -> bool {
        matches!(self, Self::Accepted | Self::Due | Self::Skipped)
    }
}
