//! Resumption of turns that the end of a process interrupted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::support::loggable;
use rockbot_core::tool::ToolGroup;
use rockbot_core::turn::{BusyPolicy, Delegation, FreeRun, RunQuery, RunState, StoredRun, TurnParent, TurnRequest};

use tokio::time::timeout;

use super::claim::HeldClaim;
use super::earlier_reports::live_again;
use super::reply::sender_trace;
use super::run::HaltOnDrop;
use super::{TurnEngine, TurnError, check_runtime};
use crate::announcements::Announcements;
use crate::conversation_outbox::ConversationOutbox;
use crate::driver::DriveStart;
use crate::live::{Admission, LiveTurn};
use crate::turn::policy::uncertain;
use crate::turn::{CancelReason, Turn, TurnEvent};

/// Pause before turns are resumed whose failure the journal did not take. A full disk is rarely
/// full for less.
const RESUME_PAUSE: Duration = Duration::from_secs(15);

/// The unfinished turns that a host took over from an earlier process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// The turns that are running again. Wait for their ends with
    /// [`Agent::outcome`](crate::Agent::outcome).
    pub running: Vec<TurnId>,
    /// The turns that wait for a person's decision. [`Agent::approvals`](crate::Agent::approvals)
    /// lists the questions.
    pub parked: Vec<TurnId>,
}

impl TurnEngine {
    /// Resumes all unfinished turns that no other process holds. The turn of `asked`, whose message
    /// came again, gets its new caller's listener and validators.
    pub(crate) async fn resume_all(self: &Arc<Self>, asked: Option<&LiveTurn>) -> Result<Resumed, TurnError> {
        check_runtime()?;
        let query = RunQuery::all();
        let free = match self.journal.cluster() {
            Some(cluster) => cluster.free(&query).await?,
            None => {
                let unfinished = self.journal.unfinished(&query).await?.into_iter();
                unfinished.map(|run| FreeRun::new(run, true)).collect()
            }
        };
        self.resume_runs(free, asked).await
    }

    /// Resumes the runs among `free` that no other process has claimed meanwhile.
    pub(super) async fn resume_runs(
        self: &Arc<Self>,
        free: Vec<FreeRun>,
        asked: Option<&LiveTurn>,
    ) -> Result<Resumed, TurnError> {
        // One at a time: if two resumes look at the same list, the second must find the turns of
        // the first live.
        let _resuming = self.resuming.lock().await;
        let mut joined = HashMap::new();
        let mut resumed = Resumed::default();
        let unread = |id: &TurnId, error: TurnError| {
            // The other turns must not wait for this turn. It is tried again when its message
            // comes, or at the next start.
            tracing::error!(turn = %id, error = %loggable(&error.to_string()), "journal unreadable; the turn is not resumed");
        };
        let is_here = |free: &FreeRun| {
            // A parked turn that does not wait any more was decided in another process, which left it.
            self.live.contains(&free.run) && (free.is_waiting || !self.live.is_parked(&free.run))
        };
        let free = free.into_iter().filter(|free| !is_here(free)).map(|free| free.run);
        let (waiting, others): (Vec<_>, Vec<_>) = free.partition(ConversationOutbox::holds);
        let (unsaid, turns): (Vec<_>, Vec<_>) = others.into_iter().partition(Announcements::holds);
        // Before the turns, which read the conversations.
        self.memory.resume(waiting).await;
        self.announcements.resume(unsaid).await;
        for id in turns {
            // The list is in order of acceptance, and a message is accepted after the turn that it joins:
            // when its own turn comes up, the turn that it joined has been resumed.
            if let Some(running) = joined.remove(&id) {
                match self.resume_joined(&id, running, asked).await {
                    Ok(()) => resumed.running.push(id),
                    Err(error) => unread(&id, error),
                }
                continue;
            }
            match self.resume(&id, asked).await {
                Ok(Some((live, turn))) => {
                    joined.extend(turn.joined().iter().map(|other| (other.clone(), live.clone())));
                    match turn.parked_until() {
                        Some(_) => resumed.parked.push(id),
                        None => resumed.running.push(id),
                    }
                }
                Ok(None) => {}
                Err(error) => unread(&id, error),
            }
        }
        Ok(resumed)
    }

    /// Resumes turns after a pause whose failure the journal did not take, and writes entries that
    /// their conversations did not take. One attempt is planned at a time, and none costs more than a
    /// write that fails.
    pub(super) fn resume_later(self: &Arc<Self>) {
        if self.resumes_later.swap(true, Ordering::Relaxed) {
            return;
        }
        let engine = self.clone();
        self.spawn(async move {
            let stopped = timeout(RESUME_PAUSE, engine.closing.cancelled()).await.is_ok();
            engine.resumes_later.store(false, Ordering::Relaxed);
            if stopped {
                return;
            }
            let resumed = engine.resume_all(None).await;
            if let Err(error) = &resumed {
                tracing::warn!(error = %loggable(&error.to_string()), "journal unreadable; unfinished turns are resumed later");
            }
            if resumed.is_err() || engine.memory.waiting() > 0 {
                engine.resume_later();
            }
        });
    }

    /// Resumes one turn and returns it with its replayed state. Returns `None` when the turn is
    /// finished, unknown, or held by another process.
    async fn resume(
        self: &Arc<Self>,
        id: &TurnId,
        asked: Option<&LiveTurn>,
    ) -> Result<Option<(Arc<LiveTurn>, Box<Turn>)>, TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(None);
        };
        if let Err(error) = self.agents.check(turn.request()) {
            tracing::warn!(turn = %id, %error, "the turn is not resumed");
            claim.release().await;
            return Ok(None);
        }
        let is_awaited_elsewhere = |parent: &TurnParent| !self.live.contains(&parent.turn);
        let is_orphan = self.is_orphan(turn.request()).await;
        if self.is_clustered() && !is_orphan && awaited_by(turn.request()).is_some_and(is_awaited_elsewhere) {
            // The process that has the turn which awaits it takes it over.
            claim.release().await;
            return Ok(None);
        }
        let live = match self.find(id) {
            Some(parked) => {
                parked.reopen();
                parked
            }
            None => live_again(&turn, asked),
        };
        self.call_off_again(&live);
        if is_orphan {
            live.cancel(CancelReason::Caller);
        }
        live.set_permit(Some(self.sessions.count(live.request())));
        self.register(&live);
        let replayed = turn.clone();
        if turn.parked_until().is_some() {
            // There is no work, which layers would wrap: it is parked again, and a parked turn holds no
            // session.
            let outcome = turn.outcome();
            self.settle(&live, claim, turn, outcome).await;
        } else {
            self.note_taken_over(id);
            // Entered here and not in the task, so that turns of one session keep their order.
            let admission = self.sessions.enter(&live, BusyPolicy::Queue);
            let engine = self.clone();
            let live = live.clone();
            let span = self.span(&live);
            self.spawn_in(
                span,
                Box::pin(async move { engine.run_resumed(live, claim, turn, admission).await }),
            );
        }
        Ok(Some((live, replayed)))
    }

    /// Returns `true` if no call waits for the result of the turn: the turn whose call began it has
    /// ended since.
    async fn is_orphan(&self, request: &TurnRequest) -> bool {
        let Some(parent) = awaited_by(request) else {
            return false;
        };
        // A parent that is unknown here belongs to another host, which may ask again.
        let parent = self.journal.read(&parent.turn).await.ok().flatten();
        parent.is_some_and(|run| matches!(run.state, RunState::Finished(_)))
    }

    async fn run_resumed(
        self: Arc<Self>,
        live: Arc<LiveTurn>,
        claim: HeldClaim,
        turn: Box<Turn>,
        admission: Admission,
    ) {
        let halt_on_drop = HaltOnDrop::new(&self, &live);
        let recovering = self.start_of(&turn, &live);
        let Some(start) = self.closing.run_until_cancelled(recovering).await else {
            // The results of its calls are not recorded yet, so the next process asks the tools again.
            claim.release().await;
            return self.leave(&live);
        };
        // From here on the guard of `run_in_session` does the same.
        halt_on_drop.disarm();
        let id = live.id().clone();
        self.run_in_session(live, claim, turn, admission, start).await;
        self.cancel_calls_of(&id);
    }

    /// Cancels the turns that calls of a resumed turn ran, and that it did not ask for again, if it
    /// has ended.
    fn cancel_calls_of(self: &Arc<Self>, ended: &TurnId) {
        if self.live.contains(ended) {
            return;
        }
        let is_left = |request: &TurnRequest| awaited_by(request).is_some_and(|parent| parent.turn == *ended);
        for live in self.live.matching(|turn| turn.parent == Some(ended)) {
            if is_left(live.request()) {
                live.cancel(CancelReason::Caller);
                let engine = self.clone();
                // A parked turn has no task that hears the token.
                self.spawn(async move { drop(engine.cancel(live.id()).await) });
            }
        }
    }

    /// Claims a turn and replays its journal. A turn whose journal cannot be replayed is ended with a
    /// failure reply.
    pub(super) async fn take_over(self: &Arc<Self>, id: &TurnId) -> Result<Option<(HeldClaim, Box<Turn>)>, TurnError> {
        let Some(claim) = self.journal.claim(id, &self.owner, self.lease()).await? else {
            return Ok(None);
        };
        let claim = HeldClaim::new(self, claim);
        let run = match self.journal.read(id).await {
            Ok(Some(run)) => run,
            unread => {
                // The claim would keep the turn from everyone until its lease ends.
                claim.release().await;
                return Err(unread
                    .err()
                    .map_or_else(|| TurnError::NotFound(id.clone()), TurnError::from));
            }
        };
        match Turn::from_run(&run) {
            Ok(turn) => Ok(Some((claim, Box::new(turn)))),
            Err(error) if self.is_left_to_newer(&run) => {
                tracing::debug!(turn = %id, %error, "a turn of a newer version is left to a process that can read it");
                claim.release().await;
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(turn = %id, %error, "journal of an interrupted turn unreadable; the turn ends with a failure reply");
                self.end_unreadable(claim, &run).await;
                Ok(None)
            }
        }
    }

    /// Ends a turn whose records cannot be replayed. If its message can still be deserialized, it
    /// gets its reply.
    async fn end_unreadable(self: &Arc<Self>, claim: HeldClaim, run: &StoredRun) {
        #[derive(serde::Deserialize)]
        struct Accepted {
            request: TurnRequest,
        }
        let outcome = Turn::unreadable(run.accepted.run.clone());
        if let Ok(Accepted { request }) = run.accepted.body.parse() {
            let is_told = self.tell(&request, &outcome, &[]).await;
            let is_replied = match &self.replies {
                Some(replies) => replies
                    .send(&request, &outcome, sender_trace(&request).as_ref())
                    .await
                    .is_ok(),
                None => true,
            };
            if !is_told || !is_replied {
                // Unfinished, it ends and tries once more at the next start.
                return claim.release().await;
            }
        }
        self.finish(claim, Arc::new(outcome)).await;
    }

    /// Returns where a resumed turn starts: from its beginning when it had none, at its end when it
    /// had reached that, or with the recovered results of the calls that were running.
    async fn start_of(&self, turn: &Turn, live: &LiveTurn) -> Option<DriveStart> {
        if turn.is_new() {
            return None;
        }
        if turn.outcome().is_some() {
            return Some(DriveStart::Steps(Vec::new()));
        }
        let mut recovered = Vec::new();
        let mut active_tools = Vec::new();
        let mut delegated = Vec::new();
        let calls: Vec<_> = uncertain(turn.calls()).collect();
        let accounts = Delegation::share(turn.budget_left(), calls.len());
        for (call, account) in calls.into_iter().zip(accounts) {
            let result = self.driver.recover(turn, live, call, &account).await;
            delegated.extend(account.take_work());
            if result.is_stored && active_tools.is_empty() {
                active_tools.push(ToolGroup::STORED_TEXTS.into());
            }
            recovered.push(result.response);
        }
        Some(DriveStart::Event(TurnEvent::Resumed {
            recovered,
            active_tools,
            delegated,
        }))
    }

    /// Resumes a turn whose message had joined `running`: it ends when `running` ends.
    async fn resume_joined(
        self: &Arc<Self>,
        id: &TurnId,
        running: Arc<LiveTurn>,
        asked: Option<&LiveTurn>,
    ) -> Result<(), TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(());
        };
        let live = LiveTurn::resumed(turn.request().clone(), asked);
        live.set_permit(Some(self.sessions.count(live.request())));
        self.register(&live);
        let engine = self.clone();
        self.spawn(async move { engine.join(&live, claim, turn, &running).await });
        Ok(())
    }
}

/// Returns the turn whose call awaits the turn of a request, if a call awaits it: such a turn has
/// its session for itself.
fn awaited_by(request: &TurnRequest) -> Option<&TurnParent> {
    request.parent.as_ref().filter(|_| request.is_forgotten)
}
