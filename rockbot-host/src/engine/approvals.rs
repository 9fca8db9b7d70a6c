//! Decisions about parked turns, and the end of waiting for them.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::turn::{
    Approval, ApprovalRequest, BusyPolicy, Claim, JournalError, ProgressSink, TurnRequest, TurnStatus,
};
use rockbot_core::{Timestamp, TurnId};

use super::{LiveTurn, TurnEngine, TurnError, TurnState};
use crate::driver::First;
use crate::turn::{CancelReason, Turn, TurnEvent, TurnStep, record};

/// The clock is looked at this often while a turn waits, so that a clock that was set and a machine that slept
/// are noticed.
const LOOK: Duration = Duration::from_secs(60);

impl TurnEngine {
    /// Applies a person's decision. Once this returns it stands in the journal; when it was the last one that the
    /// turn waited for, the turn goes on.
    pub(crate) async fn decide(self: &Arc<Self>, decision: Approval) -> Result<(), TurnError> {
        let id = decision.turn.clone();
        let missing = TurnError::NoSuchApproval {
            turn: id.clone(),
            call: decision.call.clone(),
        };
        let asked = |ask: &ApprovalRequest| ask.call == decision.call && ask.args_hash == decision.args_hash;
        let event = TurnEvent::ApprovalDecided(decision.clone());
        match self.unpark(&id, &event, |turn| waits_for(turn, asked)).await? {
            true => Ok(()),
            false => Err(missing),
        }
    }

    /// Ends a turn, whether it works or waits for a person.
    pub(crate) async fn cancel(self: &Arc<Self>, id: &TurnId) -> Result<(), TurnError> {
        let live = self.find(id).ok_or_else(|| TurnError::NotFound(id.clone()))?;
        self.call_off(&live, CancelReason::Caller).await
    }

    /// Ends the parked turns whose place `request` takes.
    pub(super) async fn supersede_parked(self: &Arc<Self>, request: &TurnRequest) {
        let waits = |live: &&Arc<LiveTurn>| {
            let (of, news) = (live.request(), live.news());
            (&of.principal, &of.session) == (&request.principal, &request.session)
                && matches!(news, TurnState::Parked(_))
        };
        let parked: Vec<_> = self.lock().values().filter(waits).cloned().collect();
        for live in parked {
            if let Err(error) = self.call_off(&live, CancelReason::Superseded).await {
                tracing::error!(turn = %live.id(), %error, "a parked turn could not be superseded");
            }
        }
    }

    async fn call_off(self: &Arc<Self>, live: &LiveTurn, reason: CancelReason) -> Result<(), TurnError> {
        live.cancel(reason);
        let event = TurnEvent::Cancelled(reason);
        self.unpark(live.id(), &event, |turn| turn.parked_until().is_some())
            .await?;
        match live.news() {
            TurnState::Halted => Err(TurnError::Halted),
            TurnState::Working | TurnState::Parked(_) | TurnState::Ended(_) => Ok(()),
        }
    }

    /// The questions that parked turns of this host wait for.
    pub(crate) fn asks(&self) -> Vec<ApprovalRequest> {
        let parked = |live: &Arc<LiveTurn>| match live.news() {
            TurnState::Parked(outcome) => match &outcome.status {
                TurnStatus::Parked(asks) => asks.clone(),
                _ => Vec::new(),
            },
            TurnState::Working | TurnState::Ended(_) | TurnState::Halted => Vec::new(),
        };
        let mut asks: Vec<_> = self.lock().values().flat_map(parked).collect();
        asks.sort_by(|a, b| (&a.turn, &a.call).cmp(&(&b.turn, &b.call)));
        asks
    }

    /// Lets `event` happen to a parked turn, if `fits` holds for it. Returns whether it did.
    async fn unpark(
        self: &Arc<Self>,
        id: &TurnId,
        event: &TurnEvent,
        fits: impl FnOnce(&Turn) -> bool,
    ) -> Result<bool, TurnError> {
        let _alone = self.unparking.lock().await;
        let Some((claim, mut turn)) = self.take_over(id).await? else {
            return Ok(false);
        };
        if !fits(&turn) {
            self.driver.journal.release(claim).await;
            return Ok(false);
        }
        let steps = match self.write(&claim, &mut turn, event).await {
            Ok(steps) => steps,
            Err(error) => {
                self.driver.journal.release(claim).await;
                return Err(error.into());
            }
        };
        let known = self.find(id);
        let is_new = known.is_none();
        let live = known.unwrap_or_else(|| LiveTurn::new(turn.request().clone(), ProgressSink::none()));
        if let (Some(until), Some(outcome)) = (turn.parked_until(), turn.outcome()) {
            self.driver.journal.release(claim).await;
            live.publish(TurnState::Parked(Arc::new(outcome)));
            self.register(&live);
            // Somebody waits for the end of a known one already.
            if is_new {
                self.expire_at(live, until);
            }
            return Ok(true);
        }
        live.open_mailbox();
        self.register(&live);
        let entry = self.sessions.enter(&live, BusyPolicy::Queue);
        let (engine, span) = (self.clone(), self.span(&live));
        self.spawn_in(span, async move {
            engine
                .run_seated(live, claim, turn, entry, Some(First::Steps(steps)))
                .await
        });
        Ok(true)
    }

    async fn write(&self, claim: &Claim, turn: &mut Turn, event: &TurnEvent) -> Result<Vec<TurnStep>, JournalError> {
        let at = self.driver.clock.now();
        let steps = turn.on(event, at);
        let record = record(event, &steps, at, false)?;
        self.driver.journal.append(claim, &[record]).await?;
        Ok(steps)
    }

    /// Refuses what nobody decided about by `until`.
    pub(super) fn expire_at(self: &Arc<Self>, live: Arc<LiveTurn>, until: Timestamp) {
        let engine = self.clone();
        self.spawn(async move {
            while let Some(left) = left(until, engine.driver.clock.now()) {
                tokio::select! {
                    () = engine.driver.halt.cancelled() => return engine.leave(&live),
                    () = live.resumed() => return,
                    () = tokio::time::sleep(left.min(LOOK)) => {}
                }
            }
            let event = TurnEvent::ApprovalExpired;
            let still = |turn: &Turn| turn.parked_until().is_some_and(|waits| waits <= until);
            if let Err(error) = engine.unpark(live.id(), &event, still).await {
                tracing::error!(turn = %live.id(), %error, "an approval that expired could not be recorded");
            }
        });
    }
}

fn left(until: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(until.since(now)).filter(|left| !left.is_zero())
}

fn waits_for(turn: &Turn, asked: impl Fn(&ApprovalRequest) -> bool) -> bool {
    match turn.outcome().map(|outcome| outcome.status) {
        Some(TurnStatus::Parked(asks)) => asks.iter().any(asked),
        _ => false,
    }
}
