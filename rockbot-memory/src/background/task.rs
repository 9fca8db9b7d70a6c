//! A background task that ends with its host.

use std::sync::Mutex;
use std::sync::PoisonError;

use async_trait::async_trait;
use rockbot_core::subsystem::Running;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A running background task that can be stopped and joined.
pub(crate) struct BackgroundTask {
    stop: CancellationToken,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl BackgroundTask {
    /// Spawns `work`; the token that it receives fires when it should stop.
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
            // A task that panicked has ended as well.
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
