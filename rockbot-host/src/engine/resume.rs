//! Going on with turns that the end of a process interrupted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::tool::{Recovery, ToolInvokeResponse};
use rockbot_core::turn::{BusyPolicy, Claim, ProgressSink};

use super::{LEASE, LiveTurn, TurnEngine, TurnError};
use crate::driver::{First, context};
use crate::turn::policy::{outcome_unknown, uncertain};
use crate::turn::{CallState, Turn, TurnEvent};

/// How often a tool is asked whether an interrupted call has ended, and how long in all.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const ASK_FOR: u32 = 60;

impl TurnEngine {
    /// Goes on with every unfinished turn. Returns those that run again; parked ones wait on.
    pub(crate) async fn resume_all(self: &Arc<Self>) -> Result<Vec<TurnId>, TurnError> {
        let (mut joined, mut resumed) = (HashMap::new(), Vec::new());
        for id in self.driver.journal.unfinished().await? {
            if self.find(&id).is_some() {
                continue;
            }
            // A message that joined another turn was accepted after that one, so its turn comes later here.
            if let Some(running) = joined.remove(&id) {
                self.resume_joined(&id, running).await?;
            } else if let Some((live, others)) = self.resume(&id, ProgressSink::none()).await? {
                joined.extend(others.into_iter().map(|other| (other, live.clone())));
            } else {
                continue;
            }
            resumed.push(id);
        }
        Ok(resumed)
    }

    /// Goes on with one turn; also returns the turns of messages that had joined it. `None` when it is finished,
    /// unknown, or another process holds it.
    pub(super) async fn resume(
        self: &Arc<Self>,
        id: &TurnId,
        progress: ProgressSink,
    ) -> Result<Option<(Arc<LiveTurn>, Vec<TurnId>)>, TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(None);
        };
        let joined = turn.joined().to_vec();
        let live = LiveTurn::new(turn.request().clone(), progress);
        self.enlist(&live);
        if turn.parked_until().is_some() {
            live.close_mailbox();
            self.park(&live, claim, &turn).await;
        } else {
            let entry = self.sessions.enter(&live, BusyPolicy::Queue);
            let (engine, task_live) = (self.clone(), live.clone());
            self.spawn(async move {
                let first = engine.first_of(&turn, &task_live).await;
                engine.run_seated(task_live, claim, turn, entry, first).await;
            });
        }
        Ok(Some((live, joined)))
    }

    /// The turn as its journal tells it, and the right to go on with it. A turn whose journal cannot be read is
    /// ended with an honest reply.
    pub(super) async fn take_over(&self, id: &TurnId) -> Result<Option<(Claim, Turn)>, TurnError> {
        let journal = &self.driver.journal;
        let Some(claim) = journal.claim(id, &self.owner, LEASE).await? else {
            return Ok(None);
        };
        let run = journal.read(id).await?.ok_or_else(|| TurnError::NotFound(id.clone()))?;
        match Turn::from_run(&run) {
            Ok(turn) => Ok(Some((claim, turn))),
            Err(error) => {
                tracing::warn!(turn = %id, %error, "an interrupted turn cannot be resumed");
                self.finish(claim, &Turn::unreadable(id.clone())).await;
                Ok(None)
            }
        }
    }

    /// What a resumed turn begins with: its start when it had none, the end when it had that, or what became of
    /// the calls that were running.
    async fn first_of(&self, turn: &Turn, live: &LiveTurn) -> Option<First> {
        if turn.is_new() {
            return None;
        }
        if turn.outcome().is_some() {
            return Some(First::Steps(Vec::new()));
        }
        let mut recovered = Vec::new();
        for call in uncertain(turn.calls()) {
            recovered.push(self.recover(turn, live, call).await);
        }
        Some(First::Event(TurnEvent::Resumed { recovered }))
    }

    /// Asks the tool of a mutating call what became of it.
    async fn recover(&self, turn: &Turn, live: &LiveTurn, call: &CallState) -> ToolInvokeResponse {
        let request = call.request(&turn.request().session);
        let cx = context(turn, live);
        for _ in 0..ASK_FOR {
            match self.driver.tools.recover(&request, &cx).await {
                Recovery::Finished(response) => return response,
                Recovery::Unknown => break,
                Recovery::Running => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
        outcome_unknown(request)
    }

    /// Ends a turn whose message had joined `running`, when that one ends.
    async fn resume_joined(self: &Arc<Self>, id: &TurnId, running: Arc<LiveTurn>) -> Result<(), TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(());
        };
        let live = LiveTurn::new(turn.request().clone(), ProgressSink::none());
        self.enlist(&live);
        let engine = self.clone();
        self.spawn(async move { engine.join(&live, claim, &running).await });
        Ok(())
    }
}
