//! The thread that folds sessions, so that nobody who appends waits for the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rockbot_core::BoxError;
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::fold;
use super::folder::Shelf;
use super::resident::Slot;

/// What there is to do. A session is asked for once until it is folded, so there are at most as many as are in memory.
enum Job {
    Fold(Slot),
    FoldAll(
        Box<dyn FnOnce() -> Result<(), StoreError> + Send>,
        mpsc::SyncSender<Result<(), StoreError>>,
    ),
}

#[derive(Debug)]
pub(super) struct FoldThread {
    /// Gone when the thread should end.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    ends: Arc<AtomicBool>,
}

impl FoldThread {
    pub(super) fn start(shelf: Arc<Shelf>) -> std::io::Result<Self> {
        let (jobs, receiver) = mpsc::channel();
        let ends = Arc::new(AtomicBool::new(false));
        let stop = ends.clone();
        let thread = std::thread::Builder::new().name("conversations".into());
        let thread = thread.spawn(move || run(&shelf, &receiver, &stop))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            ends,
        })
    }

    /// Asks for a session to be folded some time.
    pub(super) fn fold(&self, slot: Slot) {
        self.send(Job::Fold(slot));
    }

    /// Runs `work` behind everything that was asked for before.
    pub(super) async fn run(
        &self,
        work: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(Job::FoldAll(Box::new(work), sender));
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

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Without its thread nothing is folded; the logs have everything.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for FoldThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shelf: &Shelf, jobs: &mpsc::Receiver<Job>, ends: &AtomicBool) {
    // What is still asked for at the end stays in the logs.
    while let Ok(job) = jobs.recv()
        && !ends.load(Ordering::Relaxed)
    {
        match job {
            Job::Fold(slot) => {
                if let Err(error) = fold::fold(shelf, &slot) {
                    tracing::warn!(%error, "a conversation cannot be folded; its log grows on");
                }
            }
            Job::FoldAll(work, done) => {
                let _ = done.send(work());
            }
        }
    }
}
