//! A turn's way through its session: waiting for a seat, being driven, and ending.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationTurn, LogEntry};
use rockbot_core::support::loggable;
use rockbot_core::turn::{BusyPolicy, Claim, TurnFailure, TurnOutcome, TurnProgress, TurnStatus};
use rockbot_core::{BoxError, SessionId, Timestamp};
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use super::reply::{Served, unanswered};
use super::{LiveTurn, ReplySender, TurnEngine, TurnState, span};
use crate::driver::First;
use crate::routing::TierRouter;
use crate::session::{Admission, SessionGuard};
use crate::turn::{PolicySnapshot, Turn, TurnEvent};

const SECOND: Duration = Duration::from_secs(1);

/// What came of waiting for a session.
enum Seated {
    /// The session is free.
    Here(SessionGuard),
    /// The message joined this turn.
    Joined(Arc<LiveTurn>),
    /// The turn is no longer wanted.
    Unwanted,
    /// The host stops.
    Halted,
}

impl TurnEngine {
    /// Runs a turn that was just accepted.
    pub(super) async fn run_new(
        self: Arc<Self>,
        live: Arc<LiveTurn>,
        claim: Claim,
        policy: PolicySnapshot,
        at: Timestamp,
        entry: Admission,
    ) {
        let turn = Box::new(Turn::identified(live.id().clone(), live.request().clone(), policy, at));
        self.run_seated(live, claim, turn, entry, None).await;
    }

    /// Runs a turn once its session is free; from `first` on, or from its beginning.
    pub(super) async fn run_seated(
        self: &Arc<Self>,
        live: Arc<LiveTurn>,
        claim: Claim,
        turn: Box<Turn>,
        entry: Admission,
        first: Option<First>,
    ) {
        let leaving = Leaving::new(self, &live);
        match self.seat(&live, entry).await {
            Seated::Here(seat) => {
                self.run(&live, claim, turn, first).await;
                drop(seat);
            }
            Seated::Unwanted => self.run(&live, claim, turn, Some(unwanted(&live))).await,
            // Boxed, since every turn's future has room for what hardly any does.
            Seated::Joined(running) => Box::pin(self.join(&live, claim, turn, &running)).await,
            Seated::Halted => Box::pin(self.leave_or_end(&live, claim, turn)).await,
        }
        leaving.disarm();
    }

    async fn seat(&self, live: &Arc<LiveTurn>, mut entry: Admission) -> Seated {
        loop {
            let seat = match entry {
                Admission::Admitted(seat) => return Seated::Here(seat),
                Admission::Waiting(seat) => seat,
                Admission::Steered { running, taken } => {
                    match live.stop().run_until_cancelled(taken).await {
                        Some(Ok(())) => return Seated::Joined(running),
                        None => return Seated::Unwanted,
                        // The running turn ended first: the message is a turn of its own after all.
                        Some(Err(_)) => entry = self.sessions.enter(live, BusyPolicy::Queue),
                    }
                    continue;
                }
            };
            return tokio::select! {
                biased;
                () = live.stop().cancelled() => Seated::Unwanted,
                () = self.driver.halt.cancelled() => Seated::Halted,
                // A seat is never dropped unsent.
                seat = seat => seat.map_or(Seated::Halted, Seated::Here),
            };
        }
    }

    /// Drives a turn that has its session to its end, to where it waits for a person, or to where the host stops.
    pub(super) async fn run(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        mut claim: Claim,
        mut turn: Box<Turn>,
        mut first: Option<First>,
    ) {
        loop {
            let driven = AssertUnwindSafe(self.drive(live, &claim, &mut turn, first))
                .catch_unwind()
                .await;
            live.close_mailbox();
            let outcome = match driven {
                Ok(Ok(())) => turn.outcome(),
                Ok(Err(error)) => Some(failed(&turn, TurnFailure::Storage, &error)),
                Err(_) => Some(failed(
                    &turn,
                    TurnFailure::Internal,
                    &"the agent broke down; its log says why".into(),
                )),
            };
            let kept = match outcome {
                Some(outcome) if outcome.is_final() => return self.end(live, claim, &turn, outcome).await,
                Some(outcome) => self.park(live, claim, &turn, outcome).await,
                None => self.halted(live, claim).await,
            };
            let Some(kept) = kept else { return };
            (claim, first) = (kept, Some(unwanted(live)));
        }
    }

    async fn drive(
        &self,
        live: &Arc<LiveTurn>,
        claim: &Claim,
        turn: &mut Turn,
        first: Option<First>,
    ) -> Result<(), BoxError> {
        let first = match first {
            Some(first) => first,
            None => First::Event(self.begin(turn).await?),
        };
        Ok(self.driver.drive(turn, claim, live, first).await?)
    }

    /// Ends a turn: the conversation first, then the turns of messages that joined it, then the journal, then
    /// whoever waits. A crash in between ends it once more, with the same words.
    async fn end(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: Claim, turn: &Turn, outcome: TurnOutcome) {
        let outcome = self.driver.shown(turn, outcome);
        if let Err(error) = self.remember(turn, &outcome).await {
            tracing::error!(turn = %live.id(), error = %loggable(&error.to_string()), "a finished turn could not be added to its conversation");
        }
        self.note_tier(live, turn, &outcome);
        let outcome = Arc::new(outcome);
        live.announce_outcome(&outcome);
        for joined in turn.joined() {
            if let Some(joined) = self.find(joined) {
                joined.ended().await;
            }
        }
        self.conclude(live, claim, turn, outcome.clone()).await;
        self.observe(turn, &outcome);
    }

    /// Notes what came of the tier that was selected; it is written together with what else ends within a second.
    fn note_tier(self: &Arc<Self>, live: &LiveTurn, turn: &Turn, outcome: &TurnOutcome) {
        let Some(router) = &self.driver.router else { return };
        if router.ended(turn, live.decision(), outcome, self.driver.clock.now()) {
            let engine = self.clone();
            self.spawn(async move {
                let _ = timeout(SECOND, engine.driver.halt.cancelled()).await;
                engine.driver.router.iter().for_each(TierRouter::write);
            });
        }
    }

    /// Writes the end of a turn down and tells those who wait.
    async fn conclude(&self, live: &LiveTurn, claim: Claim, turn: &Turn, outcome: Arc<TurnOutcome>) {
        span::ended(&outcome);
        self.meters.record(&outcome, turn.worked());
        let Some(replies) = self.replies.as_ref().filter(|_| live.request().reply_to.is_some()) else {
            self.finish(claim, &outcome).await;
            self.deregister(live.id());
            return live.publish(TurnState::Ended(outcome));
        };
        // Whoever serves the message learns the outcome first, and the end waits until the reply is out.
        live.publish(TurnState::Ended(Arc::clone(&outcome)));
        let served = match live.slot() {
            Some(slot) => slot.served().await,
            None => Served::Left,
        };
        let sent = match served {
            Served::Sent(sent) => sent,
            Served::Left => self.reply(replies, live, &outcome).await,
            Served::Late => {
                let late = unanswered(live.id().clone(), "a turn layer took too long");
                self.reply(replies, live, &late).await
            }
        };
        match sent {
            true => self.finish(claim, &outcome).await,
            // The turn ends once more, with the same words, when the host starts again.
            false => self.driver.journal.release(claim).await,
        }
        self.deregister(live.id());
    }

    /// Sends the reply of a turn whose message nobody serves; returns whether it is out.
    async fn reply(&self, replies: &Arc<dyn ReplySender>, live: &LiveTurn, outcome: &TurnOutcome) -> bool {
        if let Some(slot) = live.slot() {
            slot.reported().await;
        }
        replies.send(live.request(), outcome).await.is_ok()
    }

    /// Ends a turn whose message joined another one, with that one's reply.
    pub(super) async fn join(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: Claim,
        turn: Box<Turn>,
        running: &LiveTurn,
    ) {
        let Some(theirs) = running.reply().await else {
            return self.leave_or_end(live, claim, turn).await;
        };
        // Without an answer there, there is none here.
        let status = match theirs.is_answer() {
            true => TurnStatus::Joined(running.id().clone()),
            false => theirs.status.clone(),
        };
        let outcome = TurnOutcome::new(live.id().clone(), status, &*theirs.text);
        self.conclude(live, claim, &turn, Arc::new(outcome)).await;
    }

    pub(super) async fn finish(&self, claim: Claim, outcome: &TurnOutcome) {
        let turn = claim.run().clone();
        let finished = match to_raw_value(outcome) {
            Ok(raw) => self.driver.journal.finish(claim, &raw).await.map_err(BoxError::from),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = finished {
            tracing::error!(%turn, %error, "the end of a turn could not be written to the journal");
        }
    }

    /// Lets a turn wait for a person; nothing runs meanwhile. Gives the claim back when the turn is to end instead.
    async fn park(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: Claim,
        turn: &Turn,
        outcome: TurnOutcome,
    ) -> Option<Claim> {
        let alone = self.unparking.lock().await;
        let asks = outcome.clone();
        if !live.suspend(TurnState::Parked(Arc::new(outcome))) {
            return Some(claim);
        }
        self.driver.journal.release(claim).await;
        if let Some(until) = turn.parked_until() {
            self.expire_at(live.clone(), until);
        }
        drop(alone);
        // Whoever is asked can decide at once.
        if let TurnStatus::Parked(asks) = asks.status {
            asks.into_iter()
                .for_each(|ask| live.progress().send(|| TurnProgress::ApprovalNeeded(ask)));
        }
        None
    }

    /// Leaves a turn where it is: it goes on when the host starts again. Gives the claim back when the turn is to
    /// end instead: what was cancelled must not come back.
    async fn halted(&self, live: &Arc<LiveTurn>, claim: Claim) -> Option<Claim> {
        if !live.suspend(TurnState::Halted) {
            return Some(claim);
        }
        self.driver.journal.release(claim).await;
        self.deregister(live.id());
        None
    }

    /// Leaves a turn where it is, or ends it when it was cancelled.
    async fn leave_or_end(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: Claim, turn: Box<Turn>) {
        if let Some(claim) = self.halted(live, claim).await {
            self.run(live, claim, turn, Some(unwanted(live))).await;
        }
    }

    /// Adds a turn to its conversation. One that failed before it did anything leaves nothing: its message can be
    /// sent again, and what went wrong is not the model's business.
    async fn remember(&self, turn: &Turn, outcome: &TurnOutcome) -> Result<(), BoxError> {
        if matches!(outcome.status, TurnStatus::Failed(_)) && outcome.calls.is_empty() {
            return Ok(());
        }
        let request = turn.request();
        // Words of the host are no answer of the model.
        let replied = match outcome.is_answer() {
            true => Role::Assistant,
            false => Role::System,
        };
        let entry = |role, content: &str| ConversationTurn {
            role,
            content: content.to_owned(),
            timestamp: self.driver.clock.now(),
            turn: outcome.turn.clone(),
        };
        let said = turn.said_by_user().map(|text| entry(Role::User, text));
        let entries: Vec<_> = said.chain([entry(replied, &outcome.text)]).collect();
        let logged = self.log.as_ref().map(|_| entries.clone());
        let remembering = async {
            let remembered = self.memory.append(&request.principal, &request.session, entries).await;
            // What one of them misses, the other one still has.
            if let (Some(log), Some(entries)) = (&self.log, logged) {
                let entries = log_entries(&request.session, entries);
                log.append(&request.principal, entries).await?;
            }
            remembered
        };
        // The reply must go out, whatever the memory does.
        match AssertUnwindSafe(remembering).catch_unwind().await {
            Ok(remembered) => Ok(remembered?),
            Err(_) => Err("the conversation memory broke down".into()),
        }
    }
}

/// Tells those who wait for a turn when its task is given up before its end.
struct Leaving<'a>(Option<(&'a Arc<TurnEngine>, Arc<LiveTurn>)>);

impl<'a> Leaving<'a> {
    fn new(engine: &'a Arc<TurnEngine>, live: &Arc<LiveTurn>) -> Self {
        Self(Some((engine, live.clone())))
    }

    /// The task came to its end. What happens to the turn from now on is another one's business.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some((engine, live)) = self.0.take() {
            engine.leave(&live);
        }
    }
}

/// How the end of a turn that is no longer wanted begins.
fn unwanted(live: &LiveTurn) -> First {
    First::Event(TurnEvent::Cancelled(live.reason()))
}

fn log_entries(session: &SessionId, entries: Vec<ConversationTurn>) -> Vec<LogEntry> {
    let entry = |entry: ConversationTurn| LogEntry {
        session_id: session.clone(),
        role: entry.role,
        content: entry.content,
        timestamp: entry.timestamp,
    };
    entries.into_iter().map(entry).collect()
}

fn failed(turn: &Turn, failure: TurnFailure, error: &BoxError) -> TurnOutcome {
    tracing::error!(turn = %turn.id(), error = %loggable(&error.to_string()), "a turn failed");
    let text = format!("This request could not be finished: {error}");
    turn.ended_with(TurnStatus::Failed(failure), text)
}
