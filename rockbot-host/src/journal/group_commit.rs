//! One sync of the disk for everybody who waits for one.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Syncs what was written; writers that come while a sync runs share the next one.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    state: Mutex<CommitState>,
}

#[derive(Debug, Default)]
struct CommitState {
    /// The sync that will begin when the running one ends, and the file as the last of its writers knows it. A full
    /// segment is synced when the next one begins, so one file is enough.
    next: Option<(Round, File)>,
    running: bool,
}

type SyncResult = Option<Result<(), Arc<io::Error>>>;

/// A sync that is to come: everybody who waits holds a receiver.
#[derive(Debug, Default)]
struct Round(watch::Sender<SyncResult>);

impl GroupCommit {
    /// Resolves once everything that was written to `file` before this call is safe on the disk.
    ///
    /// The work is done by whoever comes first; a caller that stops waiting holds up nobody, since a sync that
    /// has begun runs on a blocking thread.
    pub(crate) async fn sync(self: &Arc<Self>, file: File) -> io::Result<()> {
        let (mut result, leads) = self.join(file);
        if leads {
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.lead());
        }
        let ended = result.wait_for(Option::is_some).await;
        let result = ended.map_err(|_| io::Error::other("the sync was given up"))?.clone();
        result
            .unwrap_or(Ok(()))
            .map_err(|error| io::Error::new(error.kind(), error))
    }

    /// Joins the next round; the first to do so while none runs leads.
    fn join(&self, file: File) -> (watch::Receiver<SyncResult>, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.next.take().map_or_else(Round::default, |(round, _)| round);
        let receiver = round.0.subscribe();
        state.next = Some((round, file));
        let leads = !std::mem::replace(&mut state.running, true);
        (receiver, leads)
    }

    /// Runs rounds until nobody waits.
    fn lead(&self) {
        while let Some((round, file)) = self.next_round() {
            let result = file.sync_data().map_err(Arc::new);
            round.0.send_replace(Some(result));
        }
    }

    fn next_round(&self) -> Option<(Round, File)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.next.take();
        state.running = round.is_some();
        round
    }
}
