//! The handle of a subsystem whose work is one task.

use async_trait::async_trait;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Running;

/// A task that ends with its host: the handle of a subsystem whose work is one task.
///
/// [Stopping](Running::stop) it signals the task and waits for its end. Dropping it drops the
/// work of the task at its current await. The host is not [ready](Running::check) once the task
/// has ended by itself, by a panic perhaps.
///
/// ```
/// use rockbot_core::subsystem::{Running, RunningTask};
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (running, task) = RunningTask::new(|stop: CancellationToken| async move { stop.cancelled().await });
/// tokio::spawn(task);
/// assert!(running.check().is_ok());
/// running.stop().await;
/// assert!(running.check().is_err());
/// # }
/// ```
#[derive(Debug)]
pub struct RunningTask {
    stop: CancellationToken,
    ended: CancellationToken,
    _abort: DropGuard,
}

impl RunningTask {
    /// Creates the handle, and the task, which the caller spawns on its runtime. The token that
    /// `work` receives fires when it should stop.
    pub fn new<W, F>(work: W) -> (Self, impl Future<Output = ()>)
    where
        W: FnOnce(CancellationToken) -> F,
        F: Future<Output = ()>,
    {
        let stop = CancellationToken::new();
        let abort = CancellationToken::new();
        let ended = CancellationToken::new();
        let work = work(stop.clone());
        let aborted = abort.clone();
        let is_ended = ended.clone().drop_guard();
        let task = async move {
            // Fires however the task ends, also when it panics or is dropped.
            let _is_ended = is_ended;
            aborted.run_until_cancelled(work).await;
        };
        let running = Self {
            stop,
            ended,
            _abort: abort.drop_guard(),
        };
        (running, task)
    }
}

#[async_trait]
impl Running for RunningTask {
    async fn stop(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    fn check(&self) -> Result<(), String> {
        if self.ended.is_cancelled() {
            Err("its task has ended; the log says why".to_owned())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_has_ended() {
        let (running, task) = RunningTask::new(|_| async { panic!("out of order") });
        assert!(tokio::spawn(task).await.is_err());
        assert!(running.check().is_err());
        running.stop().await;
    }

    #[tokio::test]
    async fn dropping_the_handle_drops_the_work() {
        let held = Arc::new(());
        let work = held.clone();
        let (running, task) = RunningTask::new(|_| async move {
            let _work = work;
            std::future::pending().await
        });
        let task = tokio::spawn(task);
        drop(running);
        task.await.unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
