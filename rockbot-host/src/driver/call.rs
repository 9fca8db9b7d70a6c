//! The step that runs a group of tool calls.
//!
//! `started` records of a group and the decision before it share one write, and so do results
//! that are ready together: the same records, half the writes.

use futures_util::future::poll_immediate;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolGroup, ToolInvokeResponse};
use rockbot_core::turn::{BudgetLimit, Delegation, JournalError, TurnProgress};
use rockbot_core::{CallContext, CallId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Drive;
use super::large_results::Shortened;
use crate::turn::{CallState, TurnEvent};

impl Drive<'_> {
    /// Runs the calls of `group` concurrently. Each is recorded before it starts and as soon as it
    /// ends.
    ///
    /// The records of a group of pure calls may be written after the calls: running such a call again
    /// after a crash changes nothing, and most of them end at once, so start and result share one
    /// write.
    pub(super) async fn call(&mut self, group: &[CallId]) -> Result<(), JournalError> {
        if let Some(stop) = self.stop_event() {
            self.feed(stop);
            return Ok(());
        }
        let in_group = |call: &&CallState| group.contains(&call.call.id);
        let calls: Vec<_> = self.turn.calls().iter().filter(in_group).cloned().collect();
        self.relabel();
        self.start(&calls).await?;
        // A mutating call that runs is awaited, because its effect must be known. A mutating call
        // that still waits for a permit must not begin after the turn has ended. So mutating calls
        // get a token of their own, which stops only their waiting. A call that runs a turn gets
        // the token, too: it ends that turn, whose cost must be known.
        let begin = calls
            .iter()
            .any(is_awaited)
            .then(|| self.live.cancellation().child_token());
        // Writing the start took its time, and the token knows of a cancellation only.
        if let Some(begin) = begin.as_ref().filter(|_| Instant::now() >= self.deadline) {
            begin.cancel();
        }
        self.delegate(&calls);
        let contexts: Vec<_> = calls.iter().map(|call| self.context_of(call, begin.as_ref())).collect();
        let driver = self.driver;
        let session = self.turn.request().session.clone();
        let threshold = self.turn.policy().result_threshold;
        let running = calls.iter().zip(&contexts).map(|(call, cx)| {
            let request = call.request(&session);
            async move {
                let mut response = driver.tools.call_with_facts(request, call.facts, cx).await;
                if response.content.has_media() {
                    let keeping = driver.media.keep_or_describe(cx.principal(), &mut response.content);
                    Box::pin(keeping).await;
                }
                driver.large.shorten(response, call.facts, cx, threshold).await
            }
        });
        // In chunks: results that are ready together are recorded in one write.
        let running = running.collect::<FuturesUnordered<_>>().ready_chunks(calls.len());
        self.collect(&calls, running, begin.as_ref()).await
    }

    /// Feeds the results of the calls until all have ended or the turn is stopped. Cancelling `begin`
    /// keeps a mutating call from beginning.
    async fn collect(
        &mut self,
        calls: &[CallState],
        mut running: impl Stream<Item = Vec<Shortened>> + Unpin,
        begin: Option<&CancellationToken>,
    ) -> Result<(), JournalError> {
        // Polled once without waiting: calls that end at once need no second write for their starts.
        match poll_immediate(running.next()).await.flatten() {
            Some(ended) => self.returned(ended).await?,
            None => self.flush().await?,
        }
        let live = self.live;
        let deadline = self.deadline;
        let mut is_stopped = false;
        loop {
            // Cancel point: without a call that is awaited, dropping `running` drops the calls.
            if is_stopped && !self.awaits_any(calls) {
                return self.abandon(calls).await;
            }
            let stop = tokio::select! {
                // In order: a result that is there counts, even when the turn is being stopped.
                biased;
                batch = running.next() => match batch {
                    Some(batch) => {
                        self.returned(batch).await?;
                        continue;
                    }
                    None => return Ok(()),
                },
                () = live.cancellation().cancelled(), if !is_stopped => TurnEvent::Cancelled(live.cancel_reason()),
                () = sleep_until(deadline), if !is_stopped => TurnEvent::BudgetSpent(BudgetLimit::WallClock),
            };
            is_stopped = true;
            if let Some(begin) = begin {
                begin.cancel();
            }
            self.feed(stop);
            self.flush().await?;
        }
    }

    /// Reports whether a call runs whose end a turn awaits even when it is stopped.
    fn awaits_any(&self, calls: &[CallState]) -> bool {
        let is_of_group = |state: &CallState| calls.iter().any(|call| call.call.id == state.call.id);
        let mut open = self.turn.calls().iter().filter(|state| !state.is_finished());
        open.any(|state| is_awaited(state) && is_of_group(state))
    }

    async fn start(&mut self, calls: &[CallState]) -> Result<(), JournalError> {
        for call in calls {
            let is_critical = call.facts.effect == Effect::Mutating;
            let call = call.call.id.clone();
            self.note(TurnEvent::ToolStarted { call }, is_critical);
        }
        // Write-ahead: a resume must know that a call with an effect may have run.
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

    async fn returned(&mut self, batch: Vec<Shortened>) -> Result<(), JournalError> {
        for Shortened { response, is_stored } in batch {
            if self.is_left_to_resume(&response.tool_call_id) {
                continue;
            }
            self.live.progress().send(|| TurnProgress::ToolFinished {
                call: response.tool_call_id.clone(),
                tool: response.tool_name.clone(),
                is_error: response.is_error,
                content: response.content.words().into_owned(),
            });
            self.activate(&response, is_stored);
            self.feed(TurnEvent::ToolReturned(response));
        }
        // With a next step at hand, that step flushes before it acts, and both share one write.
        if self.steps.is_empty() {
            self.flush().await?;
        }
        Ok(())
    }

    /// Records the groups of tools that a call activated, before its result.
    fn activate(&mut self, response: &ToolInvokeResponse, is_stored: bool) {
        let mut calls = self.turn.calls().iter();
        let call = calls.find(|state| state.call.id == response.tool_call_id);
        let arguments = call.map_or("", |state| &*state.call.arguments);
        let mut activated = self
            .driver
            .tools
            .activated(self.turn.request().tools.as_ref(), response, arguments);
        if is_stored {
            activated.groups.push(ToolGroup::STORED_TEXTS.into());
        }
        let active = self.turn.active_tools();
        activated.groups.retain(|group| !active.contains(group));
        if !activated.is_own && activated.groups.is_empty() {
            return;
        }
        let own = activated.is_own.then(|| response.tool_call_id.clone());
        let groups = activated.groups;
        self.note(TurnEvent::Activated { own, groups }, false);
    }

    /// Opens an account for each call that runs a turn of another agent.
    fn delegate(&mut self, calls: &[CallState]) {
        let delegating: Vec<_> = calls.iter().filter(|call| call.facts.runs_turn).collect();
        if delegating.is_empty() {
            return self.delegations.clear();
        }
        let accounts = Delegation::share(self.turn.budget_left(), delegating.len());
        let ids = delegating.into_iter().map(|call| call.call.id.clone());
        self.delegations = ids.zip(accounts).collect();
    }

    /// Enters the cost of the turn of another agent, if `call` ran one. Returns `true` if that turn
    /// was interrupted because both hosts stop: the call has no result yet, and a resume asks for
    /// it.
    fn is_left_to_resume(&mut self, call: &CallId) -> bool {
        let Some(account) = self.account_of(call).cloned() else {
            return false;
        };
        account.close();
        for work in account.take_work() {
            self.note(TurnEvent::Delegated(work), false);
        }
        account.is_interrupted() && self.driver.closing.is_cancelled()
    }

    fn account_of(&self, call: &CallId) -> Option<&Delegation> {
        let mut accounts = self.delegations.iter();
        accounts.find_map(|(id, account)| (id == call).then_some(account))
    }

    /// Abandons calls that can be run again without harm: the unfinished calls get a `Cancelled`
    /// response.
    async fn abandon(&mut self, calls: &[CallState]) -> Result<(), JournalError> {
        let error = ToolError::new(ToolErrorCode::Cancelled, "stopped: the turn ended first");
        let is_open = |id: &CallId| {
            self.turn
                .calls()
                .iter()
                .any(|call| call.call.id == *id && !call.is_finished())
        };
        let session = &self.turn.request().session;
        let open = calls.iter().filter(|call| is_open(&call.call.id));
        let responses = open.map(|call| Shortened::unchanged(call.request(session).fail(&error)));
        let responses = responses.collect();
        self.returned(responses).await
    }

    /// Returns the context of one call: the turn's, and besides
    ///
    /// - for a turn with a listener, the reporter that names this call;
    /// - for a call that is awaited, the token `begin` instead of the turn's: once it runs, only its
    ///   own time limit holds;
    /// - for a call about the turn's task list, that list;
    /// - for a call that runs a turn of another agent, the account of that turn;
    /// - for a call of a model that has read text of others, that text;
    /// - for a call that a person approved, its grant.
    fn context_of(&self, call: &CallState, begin: Option<&CancellationToken>) -> CallContext {
        let cx = match begin {
            Some(begin) => self.lasting.clone().with_cancellation(begin.clone()),
            None => self.cx.clone(),
        };
        let cx = self.with_reporter(cx, Some((&call.call.id, &call.call.name)));
        let cx = match self.turn.tasks_before(&call.call) {
            Some(tasks) => cx.with_extension(tasks),
            None => cx,
        };
        let is_doubtful =
            self.turn.label().is_untrusted() && self.driver.tools.may_doubt(&call.call.name, call.facts.effect, &cx);
        let cx = if is_doubtful {
            cx.with_extension(self.read_messages())
        } else {
            cx
        };
        let cx = match self.account_of(&call.call.id) {
            Some(account) => cx.with_extension(account.clone()),
            None => cx,
        };
        match call.grant() {
            Some(grant) => cx.with_grants([grant]),
            None => cx,
        }
    }
}

/// Reports whether a turn that is stopped awaits the end of a call: its effect or its cost must
/// be known.
fn is_awaited(call: &CallState) -> bool {
    call.facts.effect == Effect::Mutating || call.facts.runs_turn
}
