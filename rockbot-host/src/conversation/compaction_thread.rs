//! The thread that folds sessions, so that nobody who appends waits for the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rockbot_core::BoxError;
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::compaction;
use super::folder::ConversationFolder;
use super::session_cache::Slot;

/// What there is to do. A session is asked for once until it is folded, so there are at most as many as are in memory.
enum CompactionJob {
    Compact(Slot),
    RunAfterAll(
        Box<dyn FnOnce() -> Result<(), StoreError> + Send>,
        mpsc::SyncSender<Result<(), StoreError>>,
    ),
}

#[derive(Debug)]
pub(super) struct CompactionThread {
    /// Gone when the thread should end.
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

    /// Asks for a session to be folded some time.
    pub(super) fn schedule(&self, slot: Slot) {
        self.send(CompactionJob::Compact(slot));
    }

    /// Runs `work` behind everything that was asked for before.
    pub(super) async fn run(
        &self,
        work: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(CompactionJob::RunAfterAll(Box::new(work), sender));
        // The runtime must know that somebody works: a paused clock would run to every time limit meanwhile.
        let waiting = tokio::task::spawn_blocking(move || receiver.recv());
        let error: BoxError = match waiting.await {
            Ok(Ok(result)) => return result,
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        };
        let context = "conversations are folded no more since a fold panicked; their logs have everything";
        Err(StoreError::new(StoreErrorKind::Closed, context).with_source(error))
    }

    fn send(&self, job: CompactionJob) {
        if let Some(jobs) = &self.jobs {
            // Without its thread nothing is folded; the logs have everything.
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
    // What is still asked for at the end stays in the logs.
    while let Ok(job) = jobs.recv()
        && !ends.load(Ordering::Relaxed)
    {
        match job {
            CompactionJob::Compact(slot) => {
                if let Err(error) = compaction::compact(folder, &slot) {
                    tracing::warn!(%error, "a conversation cannot be folded; its log grows on");
                }
            }
            CompactionJob::RunAfterAll(work, done) => {
                let _ = done.send(work());
            }
        }
    }
}
