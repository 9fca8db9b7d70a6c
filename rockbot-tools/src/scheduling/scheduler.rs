//! The scheduler: it sleeps until the next task is due, runs it as a turn, and notes what became of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::context::{Origin, Priority};
use rockbot_core::files::FileError;
use rockbot_core::store::{RulesStore, StorePath};
use rockbot_core::support::loggable;
use rockbot_core::turn::{Announcement, TurnError, TurnRequest, TurnRunner};
use rockbot_core::{Clock, Principal, Timestamp, TurnId};
use tokio::sync::{Mutex, Notify};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::store::TaskStore;
use super::task::{Due, Occurrence, OccurrenceState, ScheduledTask};

/// Name of the program that sends the messages of tasks, which is part of their identity.
const SOURCE: &str = "rockbot.schedule";

/// Number of runs that fail in a row before a task is paused.
const MAX_FAILURES: u32 = 5;

/// Pause before a task is tried again whose turn was not accepted, or whose state was not written.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// The parts that the scheduler and the tools share.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) store: Mutex<TaskStore>,
    pub(super) clock: Arc<dyn Clock>,
    /// The zone of principals who have not set their own.
    pub(super) zone: TimeZone,
    pub(super) rules: Option<Arc<dyn RulesStore>>,
    pub(super) turns: Arc<dyn TurnRunner>,
    /// Notified when a task was added, replaced or removed.
    pub(super) changed: Notify,
}

impl Scheduler {
    /// Runs tasks when they are due, until `stop` fires.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        stop.run_until_cancelled(self.work()).await;
    }

    async fn work(self: Arc<Self>) {
        self.watch_earlier().await;
        loop {
            let changed = self.changed.notified();
            let next = self.run_due().await;
            let wait = async {
                match next {
                    Some(next) => self.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                () = changed => {}
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

    /// Runs what is due, and returns the next time at which something is.
    async fn run_due(self: &Arc<Self>) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut store = self.store.lock().await;
        let mut next: Option<Timestamp> = None;
        for mut task in store.all().to_vec() {
            let zone = self.zone_of(&task.principal).await;
            let mut due = task.due(now, &zone);
            let mut stepped = Ok(());
            if matches!(due, Due::Now(..) | Due::Missed(_)) {
                stepped = self.step(&mut store, &mut task, due).await;
                due = task.due(now, &zone);
            }
            let again = match stepped {
                Ok(()) => match due {
                    Due::At(time) => Some(time),
                    Due::Never => None,
                    Due::Now(..) | Due::Missed(_) => Some(now.after(RETRY_PAUSE)),
                },
                Err(error) => {
                    let (name, error) = (loggable(&task.name), loggable(&error));
                    tracing::error!(task = %name, %error, "scheduled task not run yet; it is tried again");
                    Some(now.after(RETRY_PAUSE))
                }
            };
            next = next.into_iter().chain(again).min();
        }
        next
    }

    async fn step(self: &Arc<Self>, store: &mut TaskStore, task: &mut ScheduledTask, due: Due) -> Result<(), String> {
        let occurrence = match due {
            Due::Never | Due::At(_) => return Ok(()),
            Due::Missed(due) => Occurrence::new(due, OccurrenceState::Missed),
            Due::Now(due, late) => self.fire(task, due, late).await.map_err(|error| error.to_string())?,
        };
        let has_run = occurrence.state == OccurrenceState::Accepted;
        if has_run {
            task.last_fired_at = Some(self.clock.now());
        }
        let turn = occurrence.turn.clone().filter(|_| has_run);
        task.last = Some(occurrence);
        let written = store.put(task.clone()).map_err(|error: FileError| error.to_string());
        if let Some(turn) = turn {
            // Also where the state was not written: the same time is the same turn when it is tried again.
            self.watch(task.principal.clone(), task.name.clone(), turn);
        }
        written
    }

    /// Starts the turn of a time. The id of its message follows from the task and the time, so a second start, as after a
    /// crash, is the same turn.
    async fn fire(
        &self,
        task: &ScheduledTask,
        due: Timestamp,
        late: Option<Duration>,
    ) -> Result<Occurrence, TurnError> {
        let last = task
            .last
            .as_ref()
            .filter(|last| last.state == OccurrenceState::Accepted);
        if let Some(turn) = last.and_then(|last| last.turn.as_ref()) {
            let query = rockbot_core::turn::TurnQuery::default().with_principal(task.principal.clone());
            if self.turns.live(&query).iter().any(|live| live.turn == *turn) {
                return Ok(Occurrence {
                    turn: Some(turn.clone()),
                    ..Occurrence::new(due, OccurrenceState::Skipped)
                });
            }
        }
        let turn = self.turns.start(request(task, due, late)).await?;
        Ok(Occurrence {
            turn: Some(turn),
            ..Occurrence::new(due, OccurrenceState::Accepted)
        })
    }

    /// Waits for the ends of the runs that an earlier process had begun.
    async fn watch_earlier(self: &Arc<Self>) {
        let tasks = self.store.lock().await.all().to_vec();
        for task in tasks {
            let last = task.last.filter(|last| last.state == OccurrenceState::Accepted);
            if let Some(turn) = last.and_then(|last| last.turn) {
                self.watch(task.principal, task.name, turn);
            }
        }
    }

    /// Notes the end of a run, in a task of its own.
    fn watch(self: &Arc<Self>, principal: Principal, name: String, turn: TurnId) {
        let scheduler = self.clone();
        tokio::spawn(async move {
            let has_answer = loop {
                match scheduler.turns.outcome(&turn).await {
                    Ok(outcome) => break outcome.is_answer(),
                    // Not resumed yet.
                    Err(TurnError::Interrupted(_)) => sleep(Duration::from_secs(1)).await,
                    Err(TurnError::Halted) => return,
                    Err(_) => break false,
                }
            };
            scheduler.ended(&principal, &name, &turn, has_answer).await;
        });
    }

    async fn ended(&self, principal: &Principal, name: &str, turn: &TurnId, has_answer: bool) {
        let mut store = self.store.lock().await;
        let Some(mut task) = store.find(principal, name).cloned() else {
            return;
        };
        let last = task.last.as_mut().filter(|last| last.turn.as_ref() == Some(turn));
        if let Some(last) = last.filter(|last| last.state == OccurrenceState::Accepted) {
            last.state = if has_answer {
                OccurrenceState::Done
            } else {
                OccurrenceState::Failed
            };
        }
        task.failures = if has_answer { 0 } else { task.failures + 1 };
        let is_over = task.run_once;
        task.is_paused = !is_over && task.failures >= MAX_FAILURES;
        let written = match is_over {
            true => store.remove(principal, name).map(drop),
            false => store.put(task.clone()),
        };
        drop(store);
        if let Err(error) = written {
            tracing::error!(task = %loggable(name), error = %loggable(&error.to_string()), "end of a scheduled run not written");
        }
        if task.is_paused {
            self.tell_paused(&task, turn).await;
        }
        self.changed.notify_one();
    }

    async fn tell_paused(&self, task: &ScheduledTask, turn: &TurnId) {
        let text = format!(
            "The scheduled task \"{}\" failed {MAX_FAILURES} times in a row, and is paused. Schedule it again to go on.",
            task.name
        );
        let announcement = Announcement::new(task.principal.clone(), session(task), text).with_turn(turn.clone());
        if let Err(error) = self.turns.announce(&format!("paused-{turn}"), announcement).await {
            tracing::error!(task = %loggable(&task.name), %error, "user not told that a task is paused");
        }
    }
}

impl Occurrence {
    fn new(due: Timestamp, state: OccurrenceState) -> Self {
        Self { due, state, turn: None }
    }
}

/// Returns the session of a task's runs, which is the namespace of its notes, too.
fn session(task: &ScheduledTask) -> String {
    format!("patrol/{}", task.name)
}

fn request(task: &ScheduledTask, due: Timestamp, late: Option<Duration>) -> TurnRequest {
    let mut text = task.description.clone();
    if let Some(late) = late {
        let minutes = late.as_secs() / 60;
        text.push_str(&format!(
            "\n\n(This run is {minutes} minutes late: the agent was not running when it was due.)"
        ));
    }
    let id = format!("{}@{}", task.created_at.as_millis(), due.as_millis());
    TurnRequest::new(session(task), id, text)
        .with_principal(task.principal.clone())
        .with_source(SOURCE)
        .with_origin(Origin::Scheduled)
        .with_priority(Priority::Scheduled)
        .with_label(task.label.clone())
        // Each run stands for itself: a task of every minute would read all runs before it.
        .with_history(Vec::new())
        .with_namespace(StorePath::new(&session(task)).ok())
        .with_announced(true)
}
