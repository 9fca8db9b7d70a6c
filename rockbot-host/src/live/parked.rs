//! Parked turns in the form in which thousands of them are kept.
//!
//! A turn that waits for a person may wait for days, and most of its state is of use to tasks and
//! callers alone. So the registry keeps a parked turn as an [index](TurnIndex) for searches and the
//! JSON of its request and its outcome. A task that asks for the turn gets a [`LiveTurn`], which
//! lives as long as its holders.

use std::sync::{Arc, Weak};

use rockbot_core::turn::{TierDecision, TurnFeed, TurnOutcome, TurnRequest};
use rockbot_core::{Principal, SessionId, TurnId};

use super::LiveTurn;

/// The parts of a request that searches for turns look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnIndex<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) session: &'a SessionId,
    /// Turn that began the turn.
    pub(crate) parent: Option<&'a TurnId>,
    /// Session that gets the result.
    pub(crate) recipient: Option<&'a SessionId>,
    /// Principal who is asked for approvals.
    pub(crate) approver: Option<&'a Principal>,
}

impl<'a> TurnIndex<'a> {
    pub(super) fn of(request: &'a TurnRequest) -> Self {
        Self {
            principal: &request.principal,
            session: &request.session,
            parent: request.parent.as_ref().map(|parent| &parent.turn),
            recipient: request.recipient.as_ref().map(|recipient| &recipient.session),
            approver: request.approver.as_ref().map(|approver| &approver.principal),
        }
    }
}

/// A parked turn without the state of its tasks and callers.
#[derive(Debug)]
pub(super) struct ParkedTurn {
    principal: Principal,
    session: SessionId,
    parent: Option<TurnId>,
    recipient: Option<SessionId>,
    approver: Option<Principal>,
    /// JSON of the request and the outcome.
    body: Box<[u8]>,
    feed: Option<TurnFeed>,
    tier_decision: Option<Box<TierDecision>>,
    /// The turn, while a task or a caller holds it.
    live: Weak<LiveTurn>,
}

impl ParkedTurn {
    /// Returns the compact form of a turn that is parked with `outcome`; `None` for a turn with
    /// state that only memory has, such as the listener of its caller.
    pub(super) fn of(live: &Arc<LiveTurn>, outcome: &TurnOutcome) -> Option<Self> {
        let request = live.request();
        if live.has_unwritten_state() || !request.extensions.is_empty() {
            return None;
        }
        let body = serde_json::to_vec(&(&**request, outcome)).ok()?;
        Some(Self {
            principal: request.principal.clone(),
            session: request.session.clone(),
            parent: request.parent.as_ref().map(|parent| parent.turn.clone()),
            recipient: request.recipient.as_ref().map(|recipient| recipient.session.clone()),
            approver: request.approver.as_ref().map(|approver| approver.principal.clone()),
            body: body.into(),
            feed: live.feed().cloned(),
            tier_decision: live.tier_decision().cloned().map(Box::new),
            live: Arc::downgrade(live),
        })
    }

    pub(super) fn index(&self) -> TurnIndex<'_> {
        TurnIndex {
            principal: &self.principal,
            session: &self.session,
            parent: self.parent.as_ref(),
            recipient: self.recipient.as_ref(),
            approver: self.approver.as_ref(),
        }
    }

    /// Returns the turn if a task or a caller holds it.
    pub(super) fn held(&self) -> Option<Arc<LiveTurn>> {
        self.live.upgrade()
    }

    /// Returns the turn, which all its holders share.
    pub(super) fn live(&mut self, id: &TurnId) -> Arc<LiveTurn> {
        if let Some(live) = self.held() {
            return live;
        }
        let (request, outcome): (TurnRequest, TurnOutcome) =
            serde_json::from_slice(&self.body).expect("the JSON of a request and an outcome is read as it was written");
        let live = LiveTurn::parked(id.clone(), request, outcome, self.feed.clone());
        live.set_tier_decision(self.tier_decision.as_deref().cloned());
        self.live = Arc::downgrade(&live);
        live
    }
}
