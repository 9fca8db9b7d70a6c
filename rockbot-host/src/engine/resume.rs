//! Going on with turns that the end of a process interrupted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::tool::{Recovery, ToolInvokeResponse};
use rockbot_core::turn::{BusyPolicy, Claim, ProgressSink, StoredRun, TurnRequest};

use super::{LEASE, LiveTurn, TurnEngine, TurnError};
use crate::driver::{First, context};
use crate::session::Admission;
use crate::turn::policy::{outcome_unknown, uncertain};
use crate::turn::{CallState, Turn, TurnEvent};

/// How often a tool is asked whether an interrupted call has ended, and how long in all.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const ASK_FOR: u32 = 60;

/// The unfinished turns that a host took over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// They go on; wait for their ends with `Agent::outcome`.
    pub running: Vec<TurnId>,
    /// They wait for a person; `Agent::approvals` lists their questions.
    pub parked: Vec<TurnId>,
}

impl TurnEngine {
    /// Goes on with every unfinished turn, each reporting to what `progress` gives for it.
    pub(crate) async fn resume_all(
        self: &Arc<Self>,
        progress: impl Fn(&TurnId) -> ProgressSink + Send,
    ) -> Result<Resumed, TurnError> {
        let _alone = self.resuming.lock().await;
        let (mut joined, mut resumed) = (HashMap::new(), Resumed::default());
        for id in self.driver.journal.unfinished().await? {
            if self.find(&id).is_some() {
                continue;
            }
            // A message that joined another turn was accepted after that one, so its turn comes later here.
            if let Some(running) = joined.remove(&id) {
                self.resume_joined(&id, running, progress(&id)).await?;
                resumed.running.push(id);
            } else if let Some((live, turn)) = self.resume(&id, progress(&id)).await? {
                joined.extend(turn.joined().iter().map(|other| (other.clone(), live.clone())));
                match turn.parked_until() {
                    Some(_) => resumed.parked.push(id),
                    None => resumed.running.push(id),
                }
            }
        }
        Ok(resumed)
    }

    /// Goes on with one turn; also returns how far it had got. `None` when it is finished, unknown, or another
    /// process holds it.
    async fn resume(
        self: &Arc<Self>,
        id: &TurnId,
        progress: ProgressSink,
    ) -> Result<Option<(Arc<LiveTurn>, Box<Turn>)>, TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(None);
        };
        let live = LiveTurn::new(turn.request().clone(), progress);
        self.register(&live);
        let begun = turn.clone();
        if turn.parked_until().is_some() {
            let first = First::Steps(Vec::new());
            self.run(&live, claim, turn, Some(first)).await;
        } else {
            let entry = self.sessions.enter(&live, BusyPolicy::Queue);
            let (engine, live) = (self.clone(), live.clone());
            let span = self.span(&live);
            self.spawn_in(span, async move { engine.run_resumed(live, claim, turn, entry).await });
        }
        Ok(Some((live, begun)))
    }

    async fn run_resumed(self: Arc<Self>, live: Arc<LiveTurn>, claim: Claim, turn: Box<Turn>, entry: Admission) {
        let recovered = self.driver.halt.run_until_cancelled(self.first_of(&turn, &live)).await;
        let Some(first) = recovered else {
            // Nothing is known of its calls yet, so the next process asks again.
            self.driver.journal.release(claim).await;
            return self.leave(&live);
        };
        self.run_seated(live, claim, turn, entry, first).await;
    }

    /// The turn as its journal tells it, and the right to go on with it. A turn whose journal cannot be read is
    /// ended with an honest reply.
    pub(super) async fn take_over(&self, id: &TurnId) -> Result<Option<(Claim, Box<Turn>)>, TurnError> {
        let journal = &self.driver.journal;
        let Some(claim) = journal.claim(id, &self.owner, LEASE).await? else {
            return Ok(None);
        };
        let run = journal.read(id).await?.ok_or_else(|| TurnError::NotFound(id.clone()))?;
        match Turn::from_run(&run) {
            Ok(turn) => Ok(Some((claim, Box::new(turn)))),
            Err(error) => {
                tracing::warn!(turn = %id, %error, "an interrupted turn cannot be resumed");
                self.end_unreadable(claim, &run).await;
                Ok(None)
            }
        }
    }

    /// Ends a turn whose journal cannot be read: its message can be, perhaps, and then gets its reply.
    async fn end_unreadable(&self, claim: Claim, run: &StoredRun) {
        #[derive(serde::Deserialize)]
        struct Accepted {
            request: TurnRequest,
        }
        let outcome = Turn::unreadable(run.accepted.run.clone());
        let accepted = serde_json::from_str::<Accepted>(run.accepted.body.get());
        if let (Some(replies), Ok(accepted)) = (&self.replies, accepted)
            && replies.send(&accepted.request, &outcome).await.is_err()
        {
            // It ends once more when the host starts again.
            return self.driver.journal.release(claim).await;
        }
        self.finish(claim, &outcome).await;
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
                Recovery::Finished(response) => {
                    return self.driver.fit(response, &cx, turn.policy().result_threshold).await;
                }
                Recovery::Unknown => break,
                Recovery::Running => {}
            }
            let pause = tokio::time::sleep(ASK_AGAIN);
            if live.stop().run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        outcome_unknown(request)
    }

    /// Ends a turn whose message had joined `running`, when that one ends.
    async fn resume_joined(
        self: &Arc<Self>,
        id: &TurnId,
        running: Arc<LiveTurn>,
        progress: ProgressSink,
    ) -> Result<(), TurnError> {
        let Some((claim, turn)) = self.take_over(id).await? else {
            return Ok(());
        };
        let live = LiveTurn::new(turn.request().clone(), progress);
        self.register(&live);
        let engine = self.clone();
        self.spawn(async move { engine.join(&live, claim, turn, &running).await });
        Ok(())
    }
}
