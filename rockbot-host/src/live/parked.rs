//! Parked turns in the form in which thousands of them are kept.
//!
//! A turn that waits for a person may wait for days, and most of its state is of use to tasks and
//! callers alone. So the registry keeps a parked turn as an [index](TurnIndex) for searches and the
//! JSON of its request, its outcome and its reports. A task that asks for the turn gets a
//! [`LiveTurn`], which lives as long as its holders.

use std::sync::{Arc, Weak};

use rockbot_core::turn::{TierDecision, TurnFeed, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
use rockbot_core::{Principal, SessionId, TurnId};
use serde::{Deserialize, Serialize};

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
    /// JSON of the request, the outcome and the reports.
    body: Box<[u8]>,
    /// The feed of the reports while it has readers; else the body has the reports.
    feed: Option<TurnFeed>,
    tier_decision: Option<Box<TierDecision>>,
    /// The turn, while a task or a caller holds it.
    live: Weak<LiveTurn>,
}

/// The reports of a parked turn.
#[derive(Debug, Serialize, Deserialize)]
struct ParkedReports {
    /// Position before the first report.
    first: u64,
    reports: Vec<TurnProgress>,
    /// `true` if the requests for approval of the outcome follow the reports.
    asks: bool,
}

impl ParkedReports {
    /// Returns the reports of a feed; `None` if it has readers.
    fn of(feed: &TurnFeed, outcome: &TurnOutcome) -> Option<Self> {
        let (first, mut reports) = feed.without_readers()?;
        let asked = asked(outcome);
        let asks = reports.ends_with(&asked);
        if asks {
            reports.truncate(reports.len() - asked.len());
        }
        Some(Self { first, reports, asks })
    }

    fn into_feed(self, outcome: &TurnOutcome) -> TurnFeed {
        let asked = if self.asks { asked(outcome) } else { Vec::new() };
        TurnFeed::restored(self.first, self.reports.into_iter().chain(asked))
    }
}

/// Returns the requests for approval of an outcome as reports.
fn asked(outcome: &TurnOutcome) -> Vec<TurnProgress> {
    match &outcome.status {
        TurnStatus::Parked(requests) => requests.iter().cloned().map(TurnProgress::ApprovalNeeded).collect(),
        _ => Vec::new(),
    }
}

impl ParkedTurn {
    /// Returns the compact form of a turn that is parked with `outcome`; `None` for a turn with
    /// state that only memory has, such as the listener of its caller.
    pub(super) fn of(live: &Arc<LiveTurn>, outcome: &TurnOutcome) -> Option<Self> {
        let request = live.request();
        if live.has_unwritten_state() || !request.extensions.is_empty() {
            return None;
        }
        let reports = live.feed().and_then(|feed| ParkedReports::of(feed, outcome));
        let feed = live.feed().filter(|_| reports.is_none());
        let body = serde_json::to_vec(&(&**request, outcome, &reports)).ok()?;
        Some(Self {
            principal: request.principal.clone(),
            session: request.session.clone(),
            parent: request.parent.as_ref().map(|parent| parent.turn.clone()),
            recipient: request.recipient.as_ref().map(|recipient| recipient.session.clone()),
            approver: request.approver.as_ref().map(|approver| approver.principal.clone()),
            // A copy of the exact length: a buffer that is cut to its length leaves a gap behind it.
            body: body.as_slice().into(),
            feed: feed.cloned(),
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

    /// Returns `true` if the feed of the reports is kept, for its readers.
    #[cfg(test)]
    pub(super) fn has_feed(&self) -> bool {
        self.feed.is_some()
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
        let (request, outcome, reports): (TurnRequest, TurnOutcome, Option<ParkedReports>) =
            serde_json::from_slice(&self.body).expect("the JSON of a parked turn is read as it was written");
        let reports = reports.map(|reports| reports.into_feed(&outcome));
        let live = LiveTurn::parked(id.clone(), request, outcome, self.feed.clone().or(reports));
        live.set_tier_decision(self.tier_decision.as_deref().cloned());
        self.live = Arc::downgrade(&live);
        live
    }
}
