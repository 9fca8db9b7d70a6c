//! Calling a group of tools.

use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use futures_util::stream::FuturesUnordered;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolInvokeResponse};
use rockbot_core::turn::{BudgetLimit, JournalError, TurnProgress};
use rockbot_core::{CallContext, CallId};
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::Drive;
use crate::turn::{CallState, TurnEvent};

impl Drive<'_> {
    /// Runs the calls of `group` at once. Each is in the journal before it starts and as soon as it ends; pure calls
    /// that end at once are written when they have, since running them again changes nothing.
    pub(super) async fn call(&mut self, group: &[CallId]) -> Result<(), JournalError> {
        let calls: Vec<_> = self
            .turn
            .calls()
            .iter()
            .filter(|call| group.contains(&call.call.id))
            .cloned()
            .collect();
        if let Some(stop) = self.stopped() {
            return self.feed(&stop);
        }
        self.start(&calls).await?;
        let starting = self.live.stop().child_token();
        let contexts: Vec<_> = calls.iter().map(|call| self.context_of(call, &starting)).collect();
        let (driver, session) = (self.driver, self.turn.request().session.clone());
        let running = calls
            .iter()
            .zip(&contexts)
            .map(|(call, cx)| driver.tools.call(call.request(&session), cx));
        let mut running = running.collect::<FuturesUnordered<_>>().ready_chunks(calls.len());

        if let Some(ended) = poll_immediate(running.next()).await.flatten() {
            self.returned(ended).await?;
        } else {
            self.flush().await?;
        }
        let (live, deadline) = (self.live, self.deadline);
        let must_finish = calls.iter().any(|call| call.facts.effect == Effect::Mutating);
        let mut stopped = false;
        loop {
            let stop = tokio::select! {
                biased;
                batch = running.next() => match batch {
                    Some(batch) => {
                        self.returned(batch).await?;
                        continue;
                    }
                    None => return Ok(()),
                },
                () = live.stop().cancelled(), if !stopped => TurnEvent::Cancelled(live.reason()),
                () = sleep_until(deadline), if !stopped => TurnEvent::BudgetSpent(BudgetLimit::WallClock),
            };
            stopped = true;
            // A mutating call that still waits in line must not begin any more.
            starting.cancel();
            self.feed(&stop)?;
            self.flush().await?;
            if !must_finish {
                return self.abandon(&calls).await;
            }
        }
    }

    async fn start(&mut self, calls: &[CallState]) -> Result<(), JournalError> {
        for call in calls {
            let critical = call.facts.effect == Effect::Mutating;
            self.note(
                &TurnEvent::ToolStarted {
                    call: call.call.id.clone(),
                },
                critical,
            )?;
        }
        if calls.iter().any(|call| call.facts.effect != Effect::Pure) {
            self.flush().await?;
        }
        for CallState { call, .. } in calls {
            self.live.progress().send(|| TurnProgress::ToolStarted {
                call: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            });
        }
        Ok(())
    }

    async fn returned(&mut self, batch: Vec<ToolInvokeResponse>) -> Result<(), JournalError> {
        for response in batch {
            self.live.progress().send(|| TurnProgress::ToolFinished {
                call: response.tool_call_id.clone(),
                tool: response.tool_name.clone(),
                is_error: response.is_error,
                content: response.content.clone(),
            });
            self.feed(&TurnEvent::ToolReturned(response))?;
        }
        // With a next step at hand, that step writes: before it acts, and in the same write.
        if self.steps.is_empty() {
            self.flush().await?;
        }
        Ok(())
    }

    /// Gives up calls that change nothing, or nothing new.
    async fn abandon(&mut self, calls: &[CallState]) -> Result<(), JournalError> {
        let error = ToolError::new(ToolErrorCode::Cancelled, "stopped: the turn ended first");
        let open = |id: &CallId| {
            self.turn
                .calls()
                .iter()
                .any(|call| call.call.id == *id && !call.is_finished())
        };
        let session = &self.turn.request().session;
        let left = calls.iter().filter(|call| open(&call.call.id));
        let responses = left.map(|call| call.request(session).fail(&error)).collect();
        self.returned(responses).await
    }

    /// The turn's context; a call that a person approved carries its grant.
    fn context_of(&self, call: &CallState, starting: &CancellationToken) -> CallContext {
        // What a mutating call does must be known, so once it runs only its own time limit holds.
        let cx = match call.facts.effect {
            Effect::Pure | Effect::Idempotent => self.cx.clone(),
            Effect::Mutating => self.lasting.clone().with_cancellation(starting.clone()),
        };
        match call.grant() {
            Some(grant) => cx.with_grants([grant]),
            None => cx,
        }
    }
}
