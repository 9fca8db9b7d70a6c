//! Several processes over one journal: heartbeats renew the leases of the turns of this process,
//! and turns that no process holds are taken over.
//!
//! A process that was silent for longer than its lease may find each of its turns with another
//! owner. The journal refuses what it writes then, so it does not tell the end of such a turn.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use metrics::counter;
use rockbot_core::support::{caught, loggable};
use rockbot_core::turn::{
    BusyPolicy, Claim, ClusterJournal, Fence, JournalError, RunQuery, RunState, StoredRun, TurnJournal,
};
use rockbot_core::{AgentIdentity, IdSource as _, RandomIds, TurnId};
use tokio::time::{sleep, timeout};

use super::resume::Resumed;
use super::run::SessionWait;
use super::{TurnEngine, TurnError, read_outcome};
use crate::live::{LiveTurn, SessionGuard, TurnState};
use crate::turn::CancelReason;

/// Duration of a claim on a turn in a journal of one process: each step writes, and no step takes
/// longer than a model's answer.
const LEASE: Duration = Duration::from_secs(60 * 60);

/// First pause of a turn that waits for a turn of another process.
const SHORT_PAUSE: Duration = Duration::from_millis(10);

/// Longest pause of such a turn.
const LONG_PAUSE: Duration = Duration::from_millis(500);

/// Time for which a turn that this version cannot read is left to processes of a newer version.
const NEWER_VERSION_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Returns the name of a host in the claims of `journal`. Where processes share it, a process that
/// is started again must not renew the claims of the process before it.
pub(crate) fn owner_of(identity: &AgentIdentity, journal: &dyn TurnJournal) -> String {
    match journal.cluster() {
        Some(_) => format!("{identity} {}", RandomIds.next_id()),
        None => identity.to_string(),
    }
}

/// The runs that this process holds in a journal of several processes, with the fences of their
/// claims.
#[derive(Debug, Default)]
pub(super) struct HeldRuns(Mutex<HashMap<TurnId, Fence>>);

impl HeldRuns {
    /// Adds the run of a claim.
    pub(super) fn add(&self, claim: &Claim) {
        self.lock().insert(claim.run().clone(), claim.fence());
    }

    /// Removes the run of a claim, unless it was claimed anew.
    pub(super) fn remove(&self, claim: &Claim) {
        let mut held = self.lock();
        if held.get(claim.run()) == Some(&claim.fence()) {
            held.remove(claim.run());
        }
    }

    fn ids(&self) -> Vec<TurnId> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Fence>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnEngine {
    /// Returns the duration of claims.
    pub(super) fn lease(&self) -> Duration {
        self.journal.cluster().map_or(LEASE, ClusterJournal::lease)
    }

    /// Reports whether other processes may hold turns of the journal.
    pub(crate) fn is_clustered(&self) -> bool {
        self.journal.cluster().is_some()
    }

    /// Renews the lease of a claim from now on, until it is [let go](Self::let_go).
    pub(super) fn keep(self: &Arc<Self>, claim: &Claim) {
        if !self.is_clustered() {
            return;
        }
        self.held.add(claim);
        if !self.keeps_leases.swap(true, Ordering::Relaxed) {
            self.repeat(|engine| async move { engine.renew_leases().await });
        }
    }

    /// Renews the lease of a claim no more.
    pub(super) fn let_go(&self, claim: &Claim) {
        if self.is_clustered() {
            self.held.remove(claim);
        }
    }

    /// Takes over the turns that no process holds, now and from time to time.
    pub(crate) async fn take_over_all(self: &Arc<Self>) -> Result<Resumed, TurnError> {
        // Exported from the start, so that a first takeover is an increase.
        counter!("rockbot.agent.turns.taken_over").increment(0);
        let resumed = self.resume_all(None).await?;
        if self.is_clustered() && !self.takes_over.swap(true, Ordering::Relaxed) {
            self.repeat(|engine| async move { engine.sweep().await });
        }
        Ok(resumed)
    }

    /// Repeats `work` three times in a lease until the host stops.
    fn repeat<W>(self: &Arc<Self>, work: impl Fn(Arc<Self>) -> W + Send + 'static)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let (engine, halt, pause) = (Arc::downgrade(self), self.halt.clone(), self.lease() / 3);
        // Not a task of the engine: those are waited for when the host stops.
        tokio::spawn(async move {
            while timeout(pause, halt.cancelled()).await.is_err() {
                let Some(engine) = engine.upgrade() else { return };
                // A journal is the user's code: its panic must not end the heartbeats.
                if let Err(panic) = caught(AssertUnwindSafe(work(engine)).catch_unwind().await) {
                    tracing::error!(panic = %loggable(&panic), "the journal panicked; leases are renewed again later");
                }
            }
        });
    }

    async fn renew_leases(self: &Arc<Self>) {
        let Some(cluster) = self.journal.cluster() else { return };
        // Not all that the journal takes for this owner's: a release may have failed, and such a turn
        // must become free.
        let held = self.held.ids();
        match cluster.renew(&self.owner, &held).await {
            Ok(cancelled) => {
                let live = cancelled.iter().filter_map(|run| self.find(run));
                live.for_each(|live| live.cancel(CancelReason::Caller));
            }
            Err(error) => {
                tracing::warn!(error = %loggable(&error.to_string()), "leases not renewed; if this lasts, other processes take the turns over");
            }
        }
    }

    /// Takes over the turns that no process holds, and drops the parked turns that have ended in
    /// another process.
    async fn sweep(self: &Arc<Self>) {
        let (Some(cluster), false) = (self.journal.cluster(), self.closing.is_cancelled()) else {
            return;
        };
        let swept = async {
            let parked = self.live.parked();
            let free = cluster.free(&RunQuery::all()).await?;
            let is_free: HashSet<_> = free.iter().map(|free| &free.run).collect();
            for run in parked.iter().filter(|run| !is_free.contains(run)) {
                self.drop_ended(run).await?;
            }
            self.resume_runs(free, None).await?;
            Ok::<_, TurnError>(())
        };
        if let Err(error) = swept.await {
            tracing::warn!(error = %loggable(&error.to_string()), "journal unreadable; turns of other processes are taken over later");
        }
    }

    /// Drops a parked turn if it has ended in another process.
    async fn drop_ended(&self, run: &TurnId) -> Result<(), TurnError> {
        if let Some(StoredRun {
            state: RunState::Finished(outcome),
            ..
        }) = self.journal.read(run).await?
            && let Some(live) = self.live.remove_parked(run)
        {
            live.publish(TurnState::Ended(Arc::new(read_outcome(run, &outcome))));
        }
        Ok(())
    }

    /// Counts a turn that this process took over, if another process may have begun it.
    pub(super) fn note_taken_over(&self, turn: &TurnId) {
        if self.is_clustered() {
            tracing::info!(%turn, "a turn that no process held is taken over");
            counter!("rockbot.agent.turns.taken_over").increment(1);
        }
    }

    /// Waits until no earlier turn of the session is left in another process. The session of this
    /// process is free meanwhile, for the earlier turn may be taken over here.
    pub(super) async fn await_order(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: &Claim,
        mut session: SessionGuard,
    ) -> SessionWait {
        let mut pause = SHORT_PAUSE;
        loop {
            match self.is_next(claim).await {
                Ok(true) => return SessionWait::Acquired(session),
                Ok(false) => {}
                Err(error) if error.retry_helps() => {}
                // Another process has the turn.
                Err(_) => return SessionWait::Halted,
            }
            drop(session);
            tokio::select! {
                biased;
                () = live.cancellation().cancelled() => return SessionWait::Cancelled,
                () = self.closing.cancelled() => return SessionWait::Halted,
                () = sleep(pause) => {}
            }
            pause = LONG_PAUSE.min(pause * 2);
            let admission = self.sessions.enter(live, BusyPolicy::Queue);
            match self.wait_in_process(live, admission).await {
                SessionWait::Acquired(again) => session = again,
                ended => return ended,
            }
        }
    }

    async fn is_next(&self, claim: &Claim) -> Result<bool, JournalError> {
        match self.journal.cluster() {
            Some(cluster) => cluster.enter_session(claim).await,
            None => Ok(true),
        }
    }

    /// Gives up the place of a turn that waits for a person, or has joined another turn.
    pub(super) async fn leave_order(&self, claim: &Claim) {
        let Some(cluster) = self.journal.cluster() else { return };
        if let Err(error) = cluster.leave_session(claim).await {
            tracing::warn!(turn = %claim.run(), error = %loggable(&error.to_string()), "journal write failed; later turns of the session wait for a while");
        }
    }

    /// Checks that this process still has a turn whose end it is about to tell.
    pub(super) async fn check_held(&self, claim: &Claim) -> Result<(), JournalError> {
        if self.is_clustered() {
            self.journal.append(claim, &[]).await?;
        }
        Ok(())
    }

    /// Reports whether a turn that cannot be read is left to a process of a newer version.
    pub(super) fn is_left_to_newer(&self, run: &StoredRun) -> bool {
        let age = self.clock.now().as_millis().saturating_sub(run.accepted.at.as_millis());
        self.is_clustered() && age < NEWER_VERSION_MILLIS
    }
}
