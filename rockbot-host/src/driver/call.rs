//! Calling a group of tools.

use futures_util::future::poll_immediate;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use rockbot_core::context::UntrustedSources;
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
        if let Some(stop) = self.stopped() {
            return self.feed(&stop);
        }
        let in_group = |call: &&CallState| group.contains(&call.call.id);
        let calls: Vec<_> = self.turn.calls().iter().filter(in_group).cloned().collect();
        let content = self.turn.content_trust();
        if content < self.cx.content_trust() {
            self.cx = self.cx.clone().with_content_trust(content);
            self.lasting = self.lasting.clone().with_content_trust(content);
        }
        self.start(&calls).await?;
        // What a mutating call does must be known, so it is waited for; but it must not begin after the end.
        let mutating = calls.iter().any(|call| call.facts.effect == Effect::Mutating);
        let begin = mutating.then(|| self.live.stop().child_token());
        let changes = calls.iter().any(|call| call.facts.effect != Effect::Pure);
        let heard = changes.then(|| self.turn.untrusted_sources());
        let contexts: Vec<_> = calls
            .iter()
            .map(|call| self.context_of(call, begin.as_ref(), heard.as_ref()))
            .collect();
        let (driver, session) = (self.driver, self.turn.request().session.clone());
        let threshold = self.turn.policy().result_threshold;
        let running = calls.iter().zip(&contexts).map(|(call, cx)| {
            let request = call.request(&session);
            async move { driver.fit(driver.tools.call(request, cx).await, cx, threshold).await }
        });
        let running = running.collect::<FuturesUnordered<_>>().ready_chunks(calls.len());
        self.gather(&calls, running, begin.as_ref()).await
    }

    /// Takes in what the calls return, until all have or the turn ends. `begin` is what lets a mutating call begin.
    async fn gather(
        &mut self,
        calls: &[CallState],
        mut running: impl Stream<Item = Vec<ToolInvokeResponse>> + Unpin,
        begin: Option<&CancellationToken>,
    ) -> Result<(), JournalError> {
        match poll_immediate(running.next()).await.flatten() {
            Some(ended) => self.returned(ended).await?,
            None => self.flush().await?,
        }
        let (live, deadline) = (self.live, self.deadline);
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
            if let Some(begin) = begin {
                begin.cancel();
            }
            self.feed(&stop)?;
            self.flush().await?;
            if begin.is_none() {
                return self.abandon(calls).await;
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

    /// The turn's context; a call that a person approved carries its grant, one about the
    /// turn's task list that list, one that changes something what untrusted text was `heard`.
    /// With `begin` it is a mutating call's: once that runs, only its own time limit holds.
    fn context_of(
        &self,
        call: &CallState,
        begin: Option<&CancellationToken>,
        heard: Option<&UntrustedSources>,
    ) -> CallContext {
        let cx = match begin {
            Some(begin) => self.lasting.clone().with_cancellation(begin.clone()),
            None => self.cx.clone(),
        };
        let cx = match self.turn.tasks_before(&call.call) {
            Some(tasks) => cx.with_extension(tasks),
            None => cx,
        };
        let cx = match heard {
            Some(heard) => cx.with_extension(heard.clone()),
            None => cx,
        };
        match call.grant() {
            Some(grant) => cx.with_grants([grant]),
            None => cx,
        }
    }
}
