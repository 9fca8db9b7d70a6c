//! Group commit: one sync of the disk for all writers that wait for one.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::files::FileHandle;
use tokio::sync::watch;

/// A group commit on one file at a time.
///
/// A sync takes milliseconds, whatever has been written. Writers that arrive while one runs
/// cannot share it, because it may have started before their write; they share the next sync. So
/// at most two syncs separate a write from durability, and the number of syncs per second does
/// not grow with the number of writers.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    state: Mutex<CommitState>,
}

#[derive(Debug, Default)]
struct CommitState {
    /// The round that begins when the running one ends, with the file of its last writer. A full
    /// segment is synced before the next segment is written to, so the newest file is enough.
    next: Option<(Round, FileHandle)>,
    /// `true` while a blocking task runs rounds.
    running: bool,
}

type SyncResult = Option<Result<(), Arc<io::Error>>>;

/// A sync to come, with a receiver for each writer that waits for it.
#[derive(Debug, Default)]
struct Round(watch::Sender<SyncResult>);

impl GroupCommit {
    /// Resolves once everything that was written to `file` before this call is on the disk.
    ///
    /// The first writer spawns the blocking task that runs the rounds. Cancellation-safe: a caller
    /// that stops waiting, even the first caller, does not delay the others, since the task does
    /// not depend on it.
    pub(crate) async fn sync(self: &Arc<Self>, file: FileHandle) -> io::Result<()> {
        let (mut result, leads) = self.join(file);
        if leads {
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.lead());
        }
        let ended = result.wait_for(Option::is_some).await;
        let result = ended
            .map_err(|_| io::Error::other("the sync of the disk was abandoned; the runtime is shutting down"))?
            .clone();
        result
            .unwrap_or(Ok(()))
            .map_err(|error| io::Error::new(error.kind(), error))
    }

    /// Joins the next round. The second value is `true` for a writer that has to spawn the task.
    fn join(&self, file: FileHandle) -> (watch::Receiver<SyncResult>, bool) {
        // The state is consistent between any two statements, so a poisoned lock is safe to use.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.next.take().map_or_else(Round::default, |(round, _)| round);
        let receiver = round.0.subscribe();
        state.next = Some((round, file));
        let leads = !std::mem::replace(&mut state.running, true);
        (receiver, leads)
    }

    /// Runs rounds until no writer waits.
    fn lead(&self) {
        while let Some((round, file)) = self.next_round() {
            let result = file.sync().map_err(Arc::new);
            if let Err(error) = &result {
                self.fail_waiting(error);
            }
            round.0.send_replace(Some(result));
        }
    }

    /// Fails the round that would come next. Its writers wrote before the failed sync ended, and a
    /// system that failed to write a page may forget that it is dirty: the next sync would report
    /// their records as written.
    pub(super) fn fail_waiting(&self, error: &Arc<io::Error>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((round, _)) = state.next.take() {
            round.0.send_replace(Some(Err(error.clone())));
        }
    }

    /// Takes the next round. Without one it clears `running` under the same lock, so that no writer
    /// can join a round that no task will run.
    fn next_round(&self) -> Option<(Round, FileHandle)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.next.take();
        state.running = round.is_some();
        round
    }
}
