//! The thread that compacts logs, so that no append waits for the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rockbot_core::BoxError;
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::compaction;
use super::folder::ConversationFolder;
use super::session_cache::Slot;

/// A job of the thread.
///
/// The channel is unbounded, but its length is not: a session is scheduled once until it is
/// compacted, so there are at most as many jobs as sessions in memory.
enum CompactionJob {
    Compact(Slot),
    RunAfterAll(BoxedWork, mpsc::SyncSender<Result<(), StoreError>>),
}

/// The work of a job, which gets the flag that is set when the thread has to end.
type BoxedWork = Box<dyn FnOnce(&AtomicBool) -> Result<(), StoreError> + Send>;

/// The handle of the thread. Dropping it ends the thread after its current job and waits for it.
#[derive(Debug)]
pub(super) struct CompactionThread {
    /// `None` when the thread has to end.
    jobs: Option<mpsc::Sender<CompactionJob>>,
    thread: Option<JoinHandle<()>>,
    ends: Arc<AtomicBool>,
}

impl CompactionThread {
    pub(super) fn start(folder: Arc<ConversationFolder>) -> std::io::Result<Self> {
        let (jobs, receiver) = mpsc::channel();
        let ends = Arc::new(AtomicBool::new(false));
        let stop = ends.clone();
        let thread = std::thread::Builder::new().name("conversations".into());
        let thread = thread.spawn(move || run(&folder, &receiver, &stop))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            ends,
        })
    }

    /// Schedules the compaction of a session.
    pub(super) fn schedule(&self, slot: Slot) {
        self.send(CompactionJob::Compact(slot));
    }

    /// Runs `work` on the thread after the jobs that were scheduled before, and waits for its
    /// result. It gets the flag that is set when the thread has to end. It should take no further
    /// step then.
    pub(super) async fn run(
        &self,
        work: impl FnOnce(&AtomicBool) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(CompactionJob::RunAfterAll(Box::new(work), sender));
        // A blocking task waits, not a channel of tokio: while the runtime has no work of its own, a
        // paused test clock would jump to the next time limit.
        let waiting = tokio::task::spawn_blocking(move || receiver.recv());
        let error: BoxError = match waiting.await {
            Ok(Ok(result)) => return result,
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        };
        let context =
            "the compaction thread has ended after a panic; logs are no longer compacted, and no message is lost";
        Err(StoreError::new(StoreErrorKind::Closed, context).with_cause(error))
    }

    fn send(&self, job: CompactionJob) {
        if let Some(jobs) = &self.jobs {
            // After a panic of the thread the receiver is gone. Logs are then not compacted, and lose nothing.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for CompactionThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(folder: &ConversationFolder, jobs: &mpsc::Receiver<CompactionJob>, ends: &AtomicBool) {
    // Jobs that are left at the end are dropped: their sessions are complete in their logs.
    while let Ok(job) = jobs.recv()
        && !ends.load(Ordering::Relaxed)
    {
        match job {
            CompactionJob::Compact(slot) => {
                if let Err(error) = compaction::compact(folder, &slot) {
                    tracing::warn!(%error, "log of a conversation cannot be compacted; it keeps growing");
                }
            }
            CompactionJob::RunAfterAll(work, done) => {
                let _ = done.send(work(ends));
            }
        }
    }
}
