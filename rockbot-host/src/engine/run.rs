//! The task of a turn: it waits for its session, drives the turn, and parks, halts or ends it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rockbot_core::support::{caught, loggable, reference};
use rockbot_core::turn::{BusyPolicy, Claim, JournalError, TurnFailure, TurnOutcome, TurnProgress, TurnStatus};
use rockbot_core::{BoxError, Timestamp};

use super::TurnEngine;
use super::claim::HeldClaim;
use super::unasked::add_chain;
use crate::driver::{DriveStart, InputCheck};
use crate::live::{Admission, LiveTurn, SessionGuard, TurnState};
use crate::tool::{ReadMessages, TextIndexes};
use crate::turn::{PolicySnapshot, Revision, Turn, TurnEvent};

/// The outcome of waiting for a session.
pub(super) enum SessionWait {
    /// The turn has the session.
    Acquired(SessionGuard),
    /// The message joined this turn, which runs in the session.
    Joined(Arc<LiveTurn>),
    /// A guardrail did not let the message pass; the turn ends with this event.
    Refused(Box<TurnEvent>),
    /// The turn was cancelled first.
    Cancelled,
    /// The host stops.
    Halted,
}

impl TurnEngine {
    /// Spawns the task of a turn that was just accepted.
    pub(super) fn spawn_new(
        self: &Arc<Self>,
        live: Arc<LiveTurn>,
        claim: HeldClaim,
        policy: PolicySnapshot,
        at: Timestamp,
        admission: Admission,
    ) {
        let engine = self.clone();
        let span = self.span(&live);
        let task = Box::pin(async move {
            // Boxed: a turn moves through several futures, and each would have room for it
            // otherwise.
            let turn = Box::new(Turn::identified(live.id().clone(), live.request().clone(), policy, at));
            engine.run_in_session(live, claim, turn, admission, None).await;
        });
        self.spawn_in(span, task);
    }

    /// Waits for the session, then runs the turn from `start`, or from its beginning.
    pub(super) async fn run_in_session(
        self: &Arc<Self>,
        live: Arc<LiveTurn>,
        claim: HeldClaim,
        mut turn: Box<Turn>,
        admission: Admission,
        start: Option<DriveStart>,
    ) {
        let halt_on_drop = HaltOnDrop::new(self, &live);
        // Boxed below: every turn's future has room for the futures that it awaits, and few hosts
        // have guardrails.
        let refused = if start.is_none() && self.has_guardrails(live.request()) {
            Box::pin(self.check_input(&live, &mut turn)).await
        } else {
            None
        };
        let wait = match refused {
            Some(refused) => refused,
            None => self.wait_for_session(&live, &claim, admission).await,
        };
        match wait {
            SessionWait::Acquired(session) => {
                self.run(&live, claim, turn, start).await;
                // The session is held until the conversation and the end are written: the next turn reads both.
                drop(session);
            }
            // Boxed: every turn's future has room for these branches, which few turns take.
            SessionWait::Cancelled => Box::pin(self.end_early(&live, claim, turn, cancelled(&live))).await,
            SessionWait::Refused(event) => {
                Box::pin(self.end_early(&live, claim, turn, DriveStart::Event(*event))).await;
            }
            SessionWait::Joined(running) => {
                Box::pin(async {
                    self.leave_order(&claim).await;
                    self.join(&live, claim, turn, &running).await;
                })
                .await;
            }
            SessionWait::Halted => Box::pin(self.halt_or_end(&live, claim, turn)).await,
        }
        halt_on_drop.disarm();
    }

    /// Has the guardrails check the message of a turn that has not begun. Returns `None` if it may
    /// begin.
    async fn check_input(&self, live: &LiveTurn, turn: &mut Turn) -> Option<SessionWait> {
        match self.driver.check_input(turn, live).await {
            InputCheck::Passed => None,
            InputCheck::Refused(event) => Some(SessionWait::Refused(event)),
            InputCheck::Cancelled => Some(SessionWait::Cancelled),
            InputCheck::Halted => Some(SessionWait::Halted),
        }
    }

    async fn wait_for_session(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: &Claim,
        admission: Admission,
    ) -> SessionWait {
        match self.wait_in_process(live, admission).await {
            // Boxed: each turn's future would have room for it otherwise.
            SessionWait::Acquired(session) if self.is_clustered() => {
                Box::pin(self.await_order(live, claim, session)).await
            }
            wait => wait,
        }
    }

    /// Waits until the turns of this process leave the session to a turn.
    pub(super) async fn wait_in_process(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        mut admission: Admission,
    ) -> SessionWait {
        loop {
            let admitted = match admission {
                Admission::Unchecked => {
                    // Boxed: few messages wait for guardrails before they enter.
                    admission = Box::pin(self.enter(live)).await;
                    continue;
                }
                Admission::Admitted(session) => return SessionWait::Acquired(session),
                Admission::Queued(admitted) => admitted,
                Admission::Steered { running, joined } => {
                    match live.cancellation().run_until_cancelled(joined).await {
                        Some(Ok(())) => return SessionWait::Joined(running),
                        None => return SessionWait::Cancelled,
                        // No turn begins any more.
                        Some(Err(_)) if self.closing.is_cancelled() => return SessionWait::Halted,
                        // The running turn ended without taking the message, which becomes a turn of its own.
                        Some(Err(_)) => admission = self.sessions.enter(live, BusyPolicy::Queue),
                    }
                    continue;
                }
            };
            return tokio::select! {
                // In order: a cancelled turn must end for good rather than be resumed later, and a
                // turn of a host that stops must not begin. A guard that arrives at the same moment
                // is dropped and admits the next turn.
                biased;
                () = live.cancellation().cancelled() => SessionWait::Cancelled,
                () = self.closing.cancelled() => SessionWait::Halted,
                // Each queued turn is sent a guard, so the channel does not close before.
                admitted = admitted => admitted.map_or(SessionWait::Halted, SessionWait::Acquired),
            };
        }
    }

    /// Works on a turn within the user's layers, to its end, to the point where it waits for a
    /// person, or to the point where the host stops.
    pub(super) async fn run(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: HeldClaim,
        mut turn: Box<Turn>,
        start: Option<DriveStart>,
    ) {
        let outcome = match &self.layers {
            None => self.work(live, &claim, &mut turn, start, None).await,
            // Boxed: every turn's future would have room for it otherwise.
            Some(layers) => Box::pin(self.through_layers(layers, live, &claim, &mut turn, start)).await,
        };
        self.settle(live, claim, turn, outcome).await;
    }

    /// Ends a turn before it works: it was refused or cancelled, so there is nothing for layers to
    /// wrap.
    async fn end_early(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: HeldClaim,
        mut turn: Box<Turn>,
        start: DriveStart,
    ) {
        let outcome = self.work(live, &claim, &mut turn, Some(start), None).await;
        self.settle(live, claim, turn, outcome).await;
    }

    /// Drives a turn and returns its outcome as users may see it, or `None` when the host stops first.
    pub(super) async fn work(
        &self,
        live: &LiveTurn,
        claim: &Claim,
        turn: &mut Turn,
        start: Option<DriveStart>,
        revised: Option<Box<Revision>>,
    ) -> Option<TurnOutcome> {
        // A panic of a store, a source or a bug of the host's own ends this turn alone.
        let driven = AssertUnwindSafe(self.drive(live, claim, turn, start, revised))
            .catch_unwind()
            .await;
        let outcome = match caught(driven) {
            Ok(Ok(())) => turn.outcome()?,
            Ok(Err(error)) => match passing(error) {
                Ok(error) => {
                    let outcome = turn.failed_with(TurnFailure::Storage, "the journal is unavailable");
                    live.set_interruption(*error);
                    outcome
                }
                Err(error) => failed(turn, TurnFailure::Storage, &error),
            },
            Err(_) => failed(
                turn,
                TurnFailure::Internal,
                &"the agent failed unexpectedly; see its log for the cause".into(),
            ),
        };
        if !outcome.is_final() {
            return Some(outcome);
        }
        let mut outcome = self.output.apply(turn, outcome);
        let is_marked = turn.request().marks_statements || turn.request().is_announced;
        if is_marked && turn.label().is_untrusted() && turn.ends_with_foreign_text() {
            outcome.outside_statements =
                ReadMessages::of(turn, &TextIndexes::default()).outside_statements(&outcome.text);
        }
        Some(outcome)
    }

    /// Ends a turn, parks it, or leaves it to the next start of the host when it has no outcome. A
    /// turn that a passing error of the journal interrupted has no outcome: it goes on a little
    /// later, from its records in the journal.
    pub(super) async fn settle(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        mut claim: HeldClaim,
        mut turn: Box<Turn>,
        mut outcome: Option<TurnOutcome>,
    ) {
        loop {
            live.mailbox().close();
            if let Some(error) = live.take_interruption() {
                // Boxed, as below: few turns come here.
                return Box::pin(self.leave_unfinished(live, claim, error)).await;
            }
            let kept = match outcome {
                Some(outcome) if outcome.is_final() => return self.end(live, claim, &mut turn, outcome).await,
                Some(outcome) => self.park(live, claim, &turn, outcome).await,
                None => self.suspend_halted(live, claim).await,
            };
            // A claim that comes back means that the turn was cancelled while it was being suspended: it
            // ends now.
            let Some(kept) = kept else { return };
            claim = kept;
            let start = Some(cancelled(live));
            // Boxed, as above: few turns come here.
            outcome = Box::pin(self.work(live, &claim, &mut turn, start, None)).await;
        }
    }

    async fn drive(
        &self,
        live: &LiveTurn,
        claim: &Claim,
        turn: &mut Turn,
        start: Option<DriveStart>,
        revised: Option<Box<Revision>>,
    ) -> Result<(), BoxError> {
        let start = match start {
            Some(start) => start,
            None => {
                // Boxed: every turn's future has room for it, and few turns wait.
                Box::pin(self.await_tools(live)).await;
                if live.request().result_of.is_some() {
                    Box::pin(self.await_siblings(live)).await;
                }
                // Only now, since the conversation before the turn is complete only once the session is free.
                DriveStart::Event(self.begin(turn, revised).await?)
            }
        };
        Ok(self.driver.drive(turn, claim, live, start).await?)
    }

    /// Ends a turn whose message joined `running`, with the reply of that turn. The message became
    /// part of that turn's work, so it passes no layers of its own.
    pub(super) async fn join(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: HeldClaim,
        turn: Box<Turn>,
        running: &LiveTurn,
    ) {
        let Some(theirs) = running.announced_outcome().await else {
            return self.halt_or_end(live, claim, turn).await;
        };
        // Without an answer there, there is no answer here: the message shares the other turn's
        // failure.
        let status = if theirs.is_answer() {
            TurnStatus::Joined(running.id().clone())
        } else {
            theirs.status.clone()
        };
        let mut outcome = TurnOutcome::new(live.id().clone(), status, &*theirs.text);
        outcome.media.clone_from(&theirs.media);
        self.conclude(live, claim, &turn, Arc::new(outcome), true).await;
    }

    /// Parks a turn, which then waits for a person without a task. Returns the claim when the turn
    /// was cancelled and has to end instead.
    async fn park(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: HeldClaim,
        turn: &Turn,
        outcome: TurnOutcome,
    ) -> Option<HeldClaim> {
        // Held across the release: a decision that comes at once waits here, and then finds the turn
        // unclaimed.
        let unparking = self.unparking.lock().await;
        let status = outcome.status.clone();
        // Asked before callers see the end of their wait: they leave, and tell the person themselves.
        let is_watched = live.is_watched();
        // It may wait for days, and others must not be refused meanwhile.
        live.set_permit(None);
        if !live.suspend(TurnState::Parked(Arc::new(outcome))) {
            return Some(claim);
        }
        self.leave_order(&claim).await;
        claim.release().await;
        if let Some(until) = turn.parked_until() {
            self.expire_at(live.id(), until);
        }
        drop(unparking);
        // Reported last: a listener may decide at once, from within the sink.
        if let TurnStatus::Parked(mut requests) = status {
            add_chain(live.request(), &mut requests);
            if !is_watched {
                // Boxed: few turns wait for a person whom no caller can ask.
                Box::pin(self.announce_approvals(live.request(), &requests)).await;
            }
            requests
                .into_iter()
                .for_each(|request| live.progress().send(|| TurnProgress::ApprovalNeeded(request)));
        }
        self.live.compact(live);
        None
    }

    /// Leaves a turn to the next start of the host. Returns the claim when the turn was cancelled and
    /// has to end instead: a cancelled turn must not be resumed.
    async fn suspend_halted(&self, live: &Arc<LiveTurn>, claim: HeldClaim) -> Option<HeldClaim> {
        if !live.suspend(TurnState::Halted) {
            return Some(claim);
        }
        claim.release().await;
        self.deregister(live);
        None
    }

    /// Leaves a turn to the next start of the host, or ends it if it was cancelled.
    async fn halt_or_end(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: HeldClaim, turn: Box<Turn>) {
        if let Some(claim) = self.suspend_halted(live, claim).await {
            self.end_early(live, claim, turn, cancelled(live)).await;
        }
    }
}

/// A guard that publishes [`TurnState::Halted`] when the task of a turn is aborted before its
/// end, so that the callers that wait for the turn do not wait forever.
pub(super) struct HaltOnDrop<'a>(Option<(&'a Arc<TurnEngine>, Arc<LiveTurn>)>);

impl<'a> HaltOnDrop<'a> {
    pub(super) fn new(engine: &'a Arc<TurnEngine>, live: &Arc<LiveTurn>) -> Self {
        Self(Some((engine, live.clone())))
    }

    /// Disarms the guard: the task came to its end, and a parked turn may be running in another task
    /// by now.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for HaltOnDrop<'_> {
    fn drop(&mut self) {
        if let Some((engine, live)) = self.0.take() {
            engine.leave(&live);
        }
    }
}

/// Returns the start of a drive that ends a cancelled turn.
pub(super) fn cancelled(live: &LiveTurn) -> DriveStart {
    DriveStart::Event(TurnEvent::Cancelled(live.cancel_reason()))
}

/// Returns the error of a journal that may take the records of the turn a little later, else the
/// error as it is.
fn passing(error: BoxError) -> Result<Box<JournalError>, BoxError> {
    let error = error.downcast::<JournalError>()?;
    if error.retry_helps() { Ok(error) } else { Err(error) }
}

fn failed(turn: &Turn, failure: TurnFailure, error: &BoxError) -> TurnOutcome {
    let reference = reference(error);
    tracing::error!(turn = %turn.id(), reference, error = %loggable(&error.to_string()), "turn failed; it ends with an error reply");
    let text = format!(
        "This request could not be finished: the agent has a failure of its own, which its operator finds under the \
         reference {reference}. Try it again later."
    );
    turn.failed_with(failure, &text)
}
