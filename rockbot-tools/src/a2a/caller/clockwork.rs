//! The task that notices agents that are silent for too long.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::context::CancellationToken;
use rockbot_core::support::loggable;
use rockbot_core::{Clock as _, Timestamp};
use tokio::time::sleep;

use super::ends;
use super::host::Caller;
use super::tasks::PendingTask;
use super::tell::NotTold;

/// Pause before the host tries again to tell the end of a task.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(15);

/// Interval at which pending changes are written and old ends are forgotten.
const TIDY_INTERVAL: Duration = Duration::from_secs(30);

/// Ends the tasks whose agents are silent, until `stop` is cancelled.
pub(super) async fn run(caller: Arc<Caller>, stop: CancellationToken) {
    let mut changed = caller.changed.subscribe();
    loop {
        changed.mark_unchanged();
        let (silent, next) = caller.due().await;
        let mut has_failed = false;
        for task in silent {
            has_failed |= caller.give_up(&task).await.is_err();
        }
        let waiting = async {
            match (has_failed, next) {
                (true, _) => sleep(RETRY_PAUSE).await,
                (false, Some(next)) => caller.clock.sleep_until(next).await,
                (false, None) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = waiting => {}
            _ = changed.changed() => {}
            () = sleep(TIDY_INTERVAL) => caller.tidy().await,
        }
    }
    caller.directory.flush();
}

impl Caller {
    /// Returns the tasks whose time is over, and the time of the next task.
    async fn due(&self) -> (Vec<PendingTask>, Option<Timestamp>) {
        let now = self.clock.now();
        let tasks = self.tasks.lock().await;
        let (silent, open): (Vec<_>, Vec<_>) = tasks.open_tasks().partition(|task| task.deadline <= now);
        let next = open.iter().map(|task| task.deadline).min();
        (silent.into_iter().cloned().collect(), next)
    }

    /// Ends a task whose agent is silent, and asks the agent to stop.
    async fn give_up(&self, task: &PendingTask) -> Result<(), NotTold> {
        let told = self.end_in(task, ends::of_silence(task)).await;
        match &told {
            Ok(()) => self.call_off(task).await,
            Err(NotTold(error)) => {
                tracing::warn!(task = task.id, error = %loggable(error), "the silence of an agent is not told yet; it is tried again");
            }
        }
        told
    }

    /// Forgets ends that no call fetches, and writes the directory's pending changes.
    async fn tidy(&self) {
        self.directory.flush();
        self.tasks.lock().await.purge(self.clock.now());
    }
}
