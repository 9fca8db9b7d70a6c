//! Cancellation of turns: a cancellation that was told is in the journal, and stays so.
//!
//! The task of a working turn hears the turn's token and records the cancellation. A parked turn
//! has no task, and is unparked. While the journal takes no records the caller gets an error
//! instead. The turn then stays cancelled as long as this process lives, and is not worked on
//! when it is resumed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::turn::{JournalError, TurnRequest};

use super::{TurnEngine, TurnError};
use crate::live::{LiveTurn, TurnState};
use crate::turn::{CancelReason, Turn, TurnEvent};

/// The cancelled turns whose cancellation the journal did not take. Each is an unfinished turn of
/// the journal, and leaves when it is resumed.
pub(super) type CalledOff = Mutex<BTreeMap<TurnId, CancelReason>>;

impl TurnEngine {
    /// Cancels a turn, whether it works or is parked. Once this returns, the cancellation is in the
    /// journal; another process that works on the turn finds it there with its next record.
    pub(crate) async fn cancel(self: &Arc<Self>, id: &TurnId) -> Result<(), TurnError> {
        match self.find(id) {
            Some(live) => self.cancel_live(&live, CancelReason::Caller).await,
            None if self.journal.request_cancel(id).await? => Ok(()),
            None => Err(TurnError::NotFound(id.clone())),
        }
    }

    /// Cancels the parked turns of the session that `request` supersedes.
    pub(super) async fn supersede_parked(self: &Arc<Self>, request: &TurnRequest) {
        let session = (&request.principal, &request.session);
        for live in self.live.matching(|turn| (turn.principal, turn.session) == session) {
            let is_parked = matches!(live.state(), TurnState::Parked(_));
            if is_parked && let Err(error) = self.cancel_live(&live, CancelReason::Superseded).await {
                tracing::error!(turn = %live.id(), %error, "journal write failed; the parked turn was not superseded");
            }
        }
    }

    async fn cancel_live(self: &Arc<Self>, live: &LiveTurn, reason: CancelReason) -> Result<(), TurnError> {
        // Both are needed: a working turn hears the token, a parked one has no task that could. A turn
        // that is just being parked sees the token in `LiveTurn::suspend`, or is unparked here.
        // It stays cancelled even if the journal does not take that.
        self.live.keep_whole(live.id());
        live.cancel(reason);
        let event = TurnEvent::Cancelled(reason);
        let is_parked = |turn: &Turn| turn.parked_until().is_some();
        if self.unpark(live.id(), event, is_parked).await? {
            return Ok(());
        }
        // Cancel point: the turn stays cancelled.
        let state = tokio::select! {
            // In order: a turn that recorded its cancellation may have stopped since.
            biased;
            () = live.cancellation_recorded() => return Ok(()),
            state = live.settled() => state,
        };
        match state {
            TurnState::Halted if !self.closing.is_cancelled() => Err(unrecorded(live.id())),
            TurnState::Halted => Err(TurnError::Halted),
            // Its claim is held elsewhere, so the cancellation is in no journal.
            TurnState::Parked(_) => Err(TurnError::Elsewhere(live.id().clone())),
            TurnState::Working | TurnState::Ended(_) => Ok(()),
        }
    }

    /// Notes a turn that is left unfinished, if it was cancelled.
    pub(super) fn note_called_off(&self, live: &LiveTurn) {
        if live.cancellation().is_cancelled() {
            let mut called_off = self.called_off.lock().unwrap_or_else(PoisonError::into_inner);
            called_off.insert(live.id().clone(), live.cancel_reason());
        }
    }

    /// Cancels a turn that is resumed, if it was cancelled before.
    pub(super) fn call_off_again(&self, live: &LiveTurn) {
        let mut called_off = self.called_off.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = called_off.remove(live.id()) {
            live.cancel(reason);
        }
    }
}

fn unrecorded(turn: &TurnId) -> TurnError {
    let context = format!("the cancellation of turn {turn} is not recorded, so a restart would resume it");
    let cause = "cancel it again once the journal can be written";
    JournalError::from(StoreError::new(StoreErrorKind::Io, context).with_cause(cause)).into()
}
