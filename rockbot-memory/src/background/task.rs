//! BackgroundTask in the background that ends with its host.

use std::sync::Mutex;
use std::sync::PoisonError;

use async_trait::async_trait;
use rockbot_core::subsystem::Running;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A task that is told to stop, and then waited for.
pub(crate) struct BackgroundTask {
    stop: CancellationToken,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl BackgroundTask {
    /// Runs `work` until it ends; the token that it is given fires when it should.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(CancellationToken) -> F) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(work(stop.clone()));
        Self {
            stop,
            task: Mutex::new(Some(AbortOnDropHandle::new(task))),
        }
    }
}

#[async_trait]
impl Running for BackgroundTask {
    async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // One that panicked has ended, too.
            let _ = task.await;
        }
    }

    fn check(&self) -> Result<(), String> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match task.as_ref().is_some_and(|task| task.is_finished()) {
            true => Err("its work has broken down; the log says why".to_owned()),
            false => Ok(()),
        }
    }
}
