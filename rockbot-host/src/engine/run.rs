//! A turn's way through its session: waiting for a seat, being driven, and ending.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rockbot_core::chat::{Role, Usage};
use rockbot_core::store::ConversationTurn;
use rockbot_core::turn::{BusyPolicy, Claim, TurnFailure, TurnOutcome, TurnStatus};
use rockbot_core::{BoxError, Timestamp};
use serde_json::value::to_raw_value;

use super::{LiveTurn, News, TurnEngine};
use crate::driver::First;
use crate::session::{Entry, Seat};
use crate::turn::{PolicySnapshot, Turn, TurnEvent};

/// What came of waiting for a session.
enum Seated {
    /// The session is free.
    Here(Seat),
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
        entry: Entry,
    ) {
        let turn = Turn::new(live.request().clone(), policy, at);
        self.run_seated(live, claim, turn, entry, None).await;
    }

    /// Runs a turn once its session is free; from `first` on, or from its beginning.
    pub(super) async fn run_seated(
        self: &Arc<Self>,
        live: Arc<LiveTurn>,
        claim: Claim,
        turn: Turn,
        entry: Entry,
        first: Option<First>,
    ) {
        let leaving = Leaving::new(self, &live);
        match self.seat(&live, entry).await {
            Seated::Here(seat) => {
                self.run(&live, claim, turn, first).await;
                drop(seat);
            }
            Seated::Unwanted => {
                let first = First::Event(TurnEvent::Cancelled(live.reason()));
                self.run(&live, claim, turn, Some(first)).await;
            }
            Seated::Joined(running) => self.join(&live, claim, &running).await,
            Seated::Halted => self.halted(&live, claim).await,
        }
        leaving.disarm();
    }

    async fn seat(&self, live: &Arc<LiveTurn>, mut entry: Entry) -> Seated {
        loop {
            let seat = match entry {
                Entry::Seated(seat) => return Seated::Here(seat),
                Entry::Waiting(seat) => seat,
                Entry::Said { running, taken } => {
                    if taken.await.is_ok() {
                        return Seated::Joined(running);
                    }
                    // The running turn ended first: the message is a turn of its own after all.
                    entry = self.sessions.enter(live, BusyPolicy::Queue);
                    continue;
                }
            };
            return tokio::select! {
                biased;
                () = self.driver.halt.cancelled() => Seated::Halted,
                () = live.stop().cancelled() => Seated::Unwanted,
                // A seat is never dropped unsent.
                seat = seat => seat.map_or(Seated::Halted, Seated::Here),
            };
        }
    }

    /// Drives a turn that has its session to its end, to where it waits for a person, or to where the host stops.
    async fn run(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: Claim, mut turn: Turn, first: Option<First>) {
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
        match outcome {
            None => self.halted(live, claim).await,
            Some(outcome) if outcome.is_final() => self.end(live, claim, &turn, outcome).await,
            Some(_) => self.park(live, claim, &turn).await,
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
            None => First::Event(TurnEvent::Started {
                context: self.context(live.request()).await?,
            }),
        };
        Ok(self.driver.drive(turn, claim, live, first).await?)
    }

    /// Ends a turn: the conversation first, then the turns of messages that joined it, then the journal, then
    /// whoever waits. A crash in between ends it once more, with the same words.
    async fn end(&self, live: &Arc<LiveTurn>, claim: Claim, turn: &Turn, outcome: TurnOutcome) {
        if let Err(error) = self.remember(turn, &outcome).await {
            tracing::error!(turn = %live.id(), %error, "a finished turn could not be added to its conversation");
        }
        let outcome = Arc::new(outcome);
        live.promise(&outcome);
        for joined in turn.joined() {
            if let Some(joined) = self.find(joined) {
                joined.ended().await;
            }
        }
        self.finish(claim, &outcome).await;
        self.strike(live.id());
        live.publish(News::Ended(outcome));
    }

    /// Ends a turn whose message joined another one, with that one's reply.
    pub(super) async fn join(&self, live: &Arc<LiveTurn>, claim: Claim, running: &LiveTurn) {
        let Some(theirs) = running.reply().await else {
            return self.halted(live, claim).await;
        };
        // Without an answer there, there is none here.
        let status = match theirs.is_answer() {
            true => TurnStatus::Joined(running.id().clone()),
            false => theirs.status.clone(),
        };
        let outcome = TurnOutcome {
            turn: live.id().clone(),
            status,
            text: theirs.text.clone(),
            usage: Usage::default(),
            model_calls: 0,
            calls: Vec::new(),
        };
        self.finish(claim, &outcome).await;
        self.strike(live.id());
        live.publish(News::Ended(Arc::new(outcome)));
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

    /// Lets a turn wait for a person; nothing runs meanwhile.
    pub(super) async fn park(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: Claim, turn: &Turn) {
        let _alone = self.unparking.lock().await;
        self.park_alone(live, claim, turn).await;
    }

    /// As [`TurnEngine::park`], for who holds `unparking`: nobody can decide before everybody knows of the question.
    pub(super) async fn park_alone(self: &Arc<Self>, live: &Arc<LiveTurn>, claim: Claim, turn: &Turn) {
        self.driver.journal.release(claim).await;
        let (Some(until), Some(outcome)) = (turn.parked_until(), turn.outcome()) else {
            return;
        };
        live.publish(News::Parked(Arc::new(outcome)));
        self.expire_at(live.clone(), until);
    }

    /// Leaves a turn where it is: it goes on when the host starts again.
    async fn halted(&self, live: &Arc<LiveTurn>, claim: Claim) {
        self.driver.journal.release(claim).await;
        self.leave(live);
    }

    async fn remember(&self, turn: &Turn, outcome: &TurnOutcome) -> Result<(), BoxError> {
        let request = turn.request();
        let entry = |role, content: &str| ConversationTurn {
            role,
            content: content.to_owned(),
            timestamp: self.driver.clock.now(),
            turn: outcome.turn.clone(),
        };
        let said = turn.said_by_user().map(|text| entry(Role::User, text));
        let entries = said.chain([entry(Role::Assistant, &outcome.text)]).collect();
        let remembering = self.memory.append(&request.principal, &request.session, entries);
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

fn failed(turn: &Turn, failure: TurnFailure, error: &BoxError) -> TurnOutcome {
    tracing::error!(turn = %turn.id(), %error, "a turn failed");
    let text = format!("This request could not be finished: {error}");
    turn.ended_with(TurnStatus::Failed(failure), text)
}
