//! Approvals that a called agent needs: the user of the top turn is asked, and the call waits for
//! the decision.

use std::sync::Arc;

use rockbot_core::turn::{ApprovalRequest, TurnOutcome, TurnParent, TurnProgress, TurnStatus};
use rockbot_core::{ToolName, TurnId};

use super::unasked::add_chain;
use super::{TurnEngine, TurnError};
use crate::live::{LiveTurn, TurnState};

/// Maximum number of turns from a parked one up to the top.
const MAX_DEPTH: usize = 64;

/// A guard that cancels a turn, which waits for a person, once its caller no longer waits for it.
struct CancelOnDrop<'a>(&'a Arc<TurnEngine>, Option<TurnId>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.1.take() {
            let engine = self.0.clone();
            self.0.spawn(async move {
                // Fails when the turn has ended meanwhile.
                let _ = engine.cancel(&turn).await;
            });
        }
    }
}

impl TurnEngine {
    /// Returns the end of a turn that `parent` called: `ended`, unless the turn waits for a person
    /// and `parent` is a turn of this host. Then the user of the turn at the top is asked.
    pub(crate) async fn after_approvals(
        self: &Arc<Self>,
        ended: TurnOutcome,
        parent: Option<&TurnParent>,
    ) -> Result<TurnOutcome, TurnError> {
        let TurnStatus::Parked(requests) = &ended.status else {
            return Ok(ended);
        };
        let is_of_caller = parent.is_some_and(|parent| self.live.contains(&parent.turn));
        match self.find(&ended.turn).filter(|_| is_of_caller) {
            // Boxed: few calls wait for a person.
            Some(below) => Box::pin(self.outcome_below(&below, requests.clone())).await,
            None => Ok(ended),
        }
    }

    async fn outcome_below(
        self: &Arc<Self>,
        below: &Arc<LiveTurn>,
        mut requests: Vec<ApprovalRequest>,
    ) -> Result<TurnOutcome, TurnError> {
        let mut called_off = CancelOnDrop(self, Some(below.id().clone()));
        let ended = self.decided(below, &mut requests).await;
        called_off.1 = None;
        ended
    }

    async fn decided(
        &self,
        below: &Arc<LiveTurn>,
        requests: &mut Vec<ApprovalRequest>,
    ) -> Result<TurnOutcome, TurnError> {
        loop {
            self.ask_above(below, requests.clone()).await;
            below.unparked().await;
            match below.settled().await {
                TurnState::Ended(outcome) => return Self::end_of(below, &outcome),
                TurnState::Parked(outcome) => match &outcome.status {
                    TurnStatus::Parked(further) => requests.clone_from(further),
                    _ => return Self::end_of(below, &outcome),
                },
                TurnState::Working | TurnState::Halted => return Err(TurnError::Halted),
            }
        }
    }

    /// Asks the listener of the top turn, or its principal by an announcement.
    async fn ask_above(&self, below: &Arc<LiveTurn>, mut requests: Vec<ApprovalRequest>) {
        let top = self.name_callers(below, &mut requests);
        if !top.is_watched() {
            self.announce_approvals(top.request(), &requests).await;
        }
        // The reports are in memory alone.
        self.live.keep_whole(top.id());
        for request in requests {
            top.progress().send(|| TurnProgress::ApprovalNeeded(request));
        }
    }

    /// Names in the requests of a parked turn the agents that were called on the way to it, and
    /// returns the turn at the top.
    pub(super) fn name_callers(&self, below: &Arc<LiveTurn>, requests: &mut [ApprovalRequest]) -> Arc<LiveTurn> {
        let (top, asked_by) = self.top_of(below);
        for request in &mut *requests {
            request.asked_by.clone_from(&asked_by);
        }
        add_chain(top.request(), requests);
        top
    }

    /// Returns the turn at the top of the calls that led to `below`, and the called agents from there
    /// down.
    fn top_of(&self, below: &Arc<LiveTurn>) -> (Arc<LiveTurn>, Vec<ToolName>) {
        let mut top = below.clone();
        let mut agents = Vec::new();
        while let Some(parent) = top.request().parent.as_ref().filter(|_| agents.len() < MAX_DEPTH) {
            let Some(caller) = self.find(&parent.turn) else { break };
            // The session of a call begins with the name of the tool.
            let session = top.request().session.as_str();
            let agent = session.split_once('/').map_or(session, |(agent, _)| agent);
            agents.push(ToolName::from(agent));
            top = caller;
        }
        agents.reverse();
        (top, agents)
    }
}
