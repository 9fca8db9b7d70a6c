//! The turns of a host for its parts.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::turn::{
    Announcement, AnnouncementInbox, Approval, ApprovalRequest, BackgroundSlot, LiveTurnInfo, ProgressSink, TurnEvents,
    TurnFeed, TurnOutcome, TurnQuery, TurnRequest, TurnRunner,
};
use rockbot_core::{Principal, TurnId};

use super::inbox::Inbox;
use super::{TurnCall, TurnEngine, TurnError, TurnService};
use crate::live::TurnState;

/// The turns of a host for its parts: tools, subsystems, background work.
///
/// Weak, since the parts belong to the host: they must not keep it, and its journal, alive.
pub(crate) struct HostTurns(Weak<TurnEngine>);

impl HostTurns {
    pub(crate) fn of(engine: &Arc<TurnEngine>) -> Self {
        Self(Arc::downgrade(engine))
    }

    fn engine(&self) -> Result<Arc<TurnEngine>, TurnError> {
        self.0.upgrade().ok_or(TurnError::Halted)
    }
}

#[async_trait]
impl TurnRunner for HostTurns {
    async fn start(&self, request: TurnRequest) -> Result<TurnId, TurnError> {
        let turns = TurnService::new(self.engine()?);
        turns
            .start(TurnCall::new(request, ProgressSink::none()).with_feed(TurnFeed::new()))
            .await
    }

    async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError> {
        let engine = self.engine()?;
        let parent = request.parent.clone();
        let ended = TurnService::new(engine.clone())
            .call(TurnCall::new(request, ProgressSink::none()).with_feed(TurnFeed::new()))
            .await?;
        engine.after_approvals(ended, parent.as_ref()).await
    }

    async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        self.engine()?.outcome(turn).await
    }

    async fn events(&self, turn: &TurnId, after: u64) -> Result<TurnEvents, TurnError> {
        self.engine()?.events(turn, after).await
    }

    async fn cancel(&self, turn: &TurnId) -> Result<(), TurnError> {
        self.engine()?.cancel(turn).await
    }

    async fn check_access(&self, turn: &TurnId, by: &Principal) -> Result<(), TurnError> {
        self.engine()?.check_access(turn, by).await
    }

    fn approvals(&self, by: &Principal) -> Vec<ApprovalRequest> {
        self.engine()
            .map(|engine| engine.approval_requests(by))
            .unwrap_or_default()
    }

    async fn decide(&self, decision: Approval, by: &Principal) -> Result<(), TurnError> {
        self.engine()?.decide(decision, by).await
    }

    async fn announce(&self, id: &str, mut announcement: Announcement) -> Result<(), TurnError> {
        let engine = self.engine()?;
        if announcement.content.has_media() {
            let principal = announcement.principal.clone();
            // The journal has references, as that of a message.
            engine
                .media
                .keep_or_describe(&principal, &mut announcement.content)
                .await;
        }
        Ok(engine
            .announcements
            .append(&format!("of-part-{id}"), announcement)
            .await?)
    }

    fn inbox(&self, of: &Principal) -> Result<Box<dyn AnnouncementInbox>, TurnError> {
        Ok(Box::new(Inbox::new(&self.engine()?, of.clone())))
    }

    fn live(&self, query: &TurnQuery) -> Vec<LiveTurnInfo> {
        self.engine().map(|engine| engine.live_turns(query)).unwrap_or_default()
    }

    fn is_idle(&self) -> bool {
        self.engine().is_ok_and(|engine| engine.is_idle())
    }

    async fn background(&self, quiet: Duration) -> BackgroundSlot {
        let Ok(background) = self.engine().map(|engine| engine.background.clone()) else {
            return std::future::pending().await;
        };
        // The wait must not keep the host alive.
        background.enter(quiet, || self.is_idle()).await
    }
}

impl fmt::Debug for HostTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostTurns").field(&self.engine().is_ok()).finish()
    }
}

impl TurnEngine {
    /// Returns a stream of the reports of a turn after the position `after`, and of its end.
    pub(crate) async fn events(self: &Arc<Self>, turn: &TurnId, after: u64) -> Result<TurnEvents, TurnError> {
        if let Some(live) = self.find(turn) {
            let feed = live.feed().cloned();
            // The future holds the turn alone: a stream must not keep the host alive.
            let end = Box::pin(async move {
                match live.ended().await {
                    TurnState::Ended(outcome) => Ok((*outcome).clone()),
                    _ => Err(TurnError::Halted),
                }
            });
            return Ok(TurnEvents::new(turn.clone(), feed.as_ref(), after, end));
        }
        let ended = self.outcome(turn).await?;
        let end = Box::pin(std::future::ready(Ok(ended)));
        Ok(TurnEvents::new(turn.clone(), None, after, end))
    }

    /// Returns the turns of `query` that work or wait here.
    pub(crate) fn live_turns(&self, query: &TurnQuery) -> Vec<LiveTurnInfo> {
        let mut live = self.live.matching(|turn| {
            query
                .principal
                .as_ref()
                .is_none_or(|principal| principal == turn.principal)
                && query.session.as_ref().is_none_or(|session| session == turn.session)
        });
        live.retain(|live| query.matches(live.request()));
        let info = |live: &Arc<crate::live::LiveTurn>| {
            let is_parked = matches!(live.state(), TurnState::Parked(_));
            LiveTurnInfo::new(live.id().clone(), live.request().clone()).with_parked(is_parked)
        };
        live.iter().map(info).collect()
    }
}
