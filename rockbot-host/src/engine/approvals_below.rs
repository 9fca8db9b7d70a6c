//! Approvals that a called agent needs: the user of the top turn is asked, and the call waits for the decision.

use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::turn::{ApprovalRequest, TurnOutcome, TurnProgress, TurnStatus};

use super::{TurnEngine, TurnError};
use crate::live::{LiveTurn, TurnState};

/// Maximum number of turns from a parked one up to the top.
const MAX_DEPTH: usize = 64;

impl TurnEngine {
    /// Waits for the end of a turn that another turn of this host called, and asks for the approvals that it needs.
    pub(crate) async fn outcome_below(
        &self,
        below: &Arc<LiveTurn>,
        mut requests: Vec<ApprovalRequest>,
    ) -> Result<TurnOutcome, TurnError> {
        loop {
            self.ask_above(below, requests).await;
            below.unparked().await;
            match below.settled().await {
                TurnState::Ended(outcome) => return Self::end_of(below, &outcome),
                TurnState::Parked(outcome) => match &outcome.status {
                    TurnStatus::Parked(further) => requests = further.clone(),
                    _ => return Self::end_of(below, &outcome),
                },
                TurnState::Working | TurnState::Halted => return Err(TurnError::Halted),
            }
        }
    }

    /// Asks the listener of the top turn, or its principal by an announcement.
    async fn ask_above(&self, below: &Arc<LiveTurn>, mut requests: Vec<ApprovalRequest>) {
        let (top, asked_by) = self.top_of(below);
        for request in &mut requests {
            request.asked_by.clone_from(&asked_by);
        }
        if !top.is_watched() {
            self.announce_approvals(top.request(), &requests).await;
        }
        for request in requests {
            top.progress().send(|| TurnProgress::ApprovalNeeded(request));
        }
    }

    /// Returns the turn at the top of the calls that led to `below`, and the called agents from there down.
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
