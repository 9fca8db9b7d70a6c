//! Acceptance: from a message to a turn in the journal, admitted to its session.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rockbot_core::TurnId;
use rockbot_core::chat::{ModelTier, OutputMode};
use rockbot_core::files::MAX_ID_BYTES;
use rockbot_core::support::DigestSet;
use rockbot_core::turn::{Acceptance, Budget, Busy, BusyPolicy, RunBody, RunState, TurnOutcome, TurnRequest};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::claim::HeldClaim;
use super::{TurnCall, TurnEngine, TurnError, check_runtime, read_outcome};
use crate::behavior::ModelBehavior;
use crate::driver::AnswerTool;
use crate::live::{Admission, BacklogPermit, LiveTurn, TurnState};
use crate::turn::{AcceptedTurn, CancelReason, FORMAT_VERSION, PolicySnapshot};

/// The ids of the turns whose acceptance is being written, on a channel that notifies the callers
/// that wait for one.
pub(super) type AcceptingTurns = watch::Sender<DigestSet<TurnId>>;

impl TurnEngine {
    /// Accepts a message. Once this returns, the message has a turn that a crash cannot lose.
    ///
    /// A redelivered message leads to the turn that it had before. That turn has ended, or runs, or
    /// was interrupted and is now resumed. A message with `reports` gets its reply over the bus,
    /// once these fire.
    ///
    /// When the backlog is full, it waits for `patience` before the message is refused.
    pub(super) async fn submit(
        self: &Arc<Self>,
        call: TurnCall,
        reports: Option<CancellationToken>,
        patience: Duration,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        check_runtime()?;
        if self.closing.is_cancelled() && !self.is_part_of_running(&call.request) {
            return Err(TurnError::Halted);
        }
        check(&call.request)?;
        self.agents.check(&call.request)?;
        let has_caller = reports.is_none();
        let mut accepting = Box::pin(self.clone().accept(call, reports, patience));
        // A journal that writes without waiting, as the file journal does by default, needs no task.
        if let Poll::Ready(accepted) = poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx))).await {
            return accepted;
        }
        // Cancel point: while the journal takes its time the caller may be dropped. A task of the host's
        // own finishes the acceptance, so that no message is left in the journal without a turn that
        // works on it.
        let (sender, receiver) = oneshot::channel();
        self.spawn(async move {
            if let Err(Ok(live)) = sender.send(accepting.await)
                && has_caller
            {
                live.cancel(CancelReason::Caller);
            }
        });
        receiver.await.unwrap_or(Err(TurnError::Halted))
    }

    async fn accept(
        self: Arc<Self>,
        mut call: TurnCall,
        reports: Option<CancellationToken>,
        patience: Duration,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        if has_media(&call.request) {
            // Boxed: few messages have images, and each acceptance would have room for this otherwise.
            Box::pin(self.keep_media(&mut call.request)).await?;
        }
        let agent = self.agents.of(&call.request);
        agent.complete(&mut call.request);
        let decision = match self.router.as_ref().filter(|_| !agent.is_program) {
            // Boxed: each acceptance would have room for the selection otherwise.
            Some(router) => Box::pin(router.select(&call.request)).await,
            None => None,
        };
        let tier = decision.as_ref().map(|decision| decision.tier);
        let accepted = self.accepted(call.request, tier, call.validators.len());
        let request = accepted.request.clone();
        let policy = accepted.policy;
        let run = accepted.into_run(self.clock.now());
        let _accepting = AcceptanceGuard::enter(&self.accepting, run.run.clone()).await;
        let permit = match self.sessions.reserve(&request) {
            Ok(permit) => Some(permit),
            // Boxed: each acceptance would have room for the wait otherwise.
            Err(busy) => Box::pin(self.wait_for_room(&run.run, &request, busy, patience)).await?,
        };
        if request.is_user_message() {
            self.background.user_wrote();
        }
        let acceptance = self.journal.accept(&run, &self.owner, self.lease()).await?;
        let live = LiveTurn::accepted(run.run.clone(), request, (call.progress, call.feed), reports);
        live.set_validators(call.validators);
        match acceptance {
            Acceptance::New(claim) => {
                let claim = HeldClaim::new(&self, claim);
                live.set_tier_decision(decision);
                live.set_permit(permit);
                // Admitted before this returns, which acknowledges the message: the bus then
                // delivers the next message of the session, and sessions admit in order of arrival.
                let admission = self.admit(&live).await;
                self.spawn_new(live.clone(), claim, policy, run.at, admission);
                Ok(live)
            }
            Acceptance::Known(RunState::Finished(outcome)) => Ok(self.end_known(live, &outcome)),
            // The turn runs, or a crash interrupted it. The task that runs it sends its reply.
            _ => Box::pin(self.rejoin(live)).await,
        }
    }

    /// Returns `true` if a turn that runs here waits for the answer: an agent that gives a task to
    /// itself.
    fn is_part_of_running(&self, request: &TurnRequest) -> bool {
        let parent = request.parent.as_ref();
        !self.halt.is_cancelled() && parent.is_some_and(|parent| self.live.contains(&parent.turn))
    }

    fn accepted(&self, request: TurnRequest, tier: Option<ModelTier>, validators: usize) -> AcceptedTurn {
        let mut policy = self.policy_of(&request, tier);
        policy.hooks.add_validators(validators);
        AcceptedTurn {
            version: FORMAT_VERSION,
            request: Arc::new(request),
            policy,
        }
    }

    /// Waits for room in the backlog, within `patience`. Returns `None` for a message that the
    /// journal knows: it takes no place of its own.
    async fn wait_for_room(
        &self,
        turn: &TurnId,
        request: &TurnRequest,
        mut busy: Busy,
        patience: Duration,
    ) -> Result<Option<BacklogPermit>, TurnError> {
        if self.knows(turn).await? {
            return Ok(None);
        }
        let waiting = async {
            let mut place = None;
            loop {
                // Created before the look, so that no room that is freed in between is missed.
                let freed = self.sessions.freed();
                match self.sessions.reserve(request) {
                    Ok(permit) => return Ok(permit),
                    Err(full) => busy = full,
                }
                // If all messages of full sessions and principals waited, they would hold every
                // worker of the bus, and messages with room would wait for them. A message too many
                // goes back to the bus at once.
                place = match (busy, place) {
                    (Busy::Session { .. } | Busy::Principal { .. }, None) => {
                        Some(self.waiting.try_acquire().map_err(|_| ())?)
                    }
                    (Busy::Session { .. } | Busy::Principal { .. }, held) => held,
                    _ => None,
                };
                freed.await;
            }
        };
        let waited = self.closing.run_until_cancelled(timeout(patience, waiting)).await;
        match waited {
            Some(Ok(Ok(permit))) => Ok(Some(permit)),
            Some(Ok(Err(())) | Err(_)) => Err(busy.into()),
            None => Err(TurnError::Halted),
        }
    }

    /// Stores the images and files of a request, which refers to them from then on.
    pub(super) async fn keep_media(&self, request: &mut TurnRequest) -> Result<(), TurnError> {
        self.media.keep(&request.principal, &mut request.content).await?;
        if let Some(history) = &request.history {
            let mut messages = history.to_vec();
            for message in &mut messages {
                self.media.keep(&request.principal, &mut message.content).await?;
            }
            request.history = Some(messages.into());
        }
        Ok(())
    }

    /// Registers a new turn and enters its session, unless guardrails must check its message first.
    async fn admit(self: &Arc<Self>, live: &Arc<LiveTurn>) -> Admission {
        self.register(live);
        if self.has_guardrails(live.request()) && live.request().busy != BusyPolicy::Queue {
            Admission::Unchecked
        } else {
            self.enter(live).await
        }
    }

    /// Returns `true` if guardrails check the message. They do not check messages to a program.
    pub(super) fn has_guardrails(&self, request: &TurnRequest) -> bool {
        self.driver.has_guardrails() && !self.agents.of(request).is_program
    }

    /// Enters the session of a turn as its message asks.
    pub(super) async fn enter(self: &Arc<Self>, live: &Arc<LiveTurn>) -> Admission {
        if live.request().busy == BusyPolicy::Supersede {
            // Boxed: few messages supersede, and each acceptance would have room for this otherwise.
            Box::pin(self.supersede_parked(live.request())).await;
        }
        self.sessions.enter(live, live.request().busy)
    }

    /// Returns the settings of a message's turn: the host's, as its model's behavior and the message
    /// change them.
    pub(super) fn policy_of(&self, request: &TurnRequest, tier: Option<ModelTier>) -> PolicySnapshot {
        let agent = self.agents.of(request);
        let behavior = self.behavior(request, request.tier.or(tier));
        let mut policy = behavior.policy(self.policy, request.budget);
        if request.parent.is_some() && request.recipient.is_some() {
            // A turn began it, which does not decide about the costs of the host.
            policy.budget = bounded(policy.budget, &behavior.policy(self.policy, None).budget);
        }
        if agent.is_program {
            return policy.of_program();
        }
        policy.economy.window = agent.windows.of_tier(request.tier.or(tier));
        policy.output_mode = self.output_mode(request, request.tier.or(tier));
        PolicySnapshot { tier, ..policy }
    }

    /// Returns the way to make the model of a tier match the schema of the request, if it has a
    /// schema.
    fn output_mode(&self, request: &TurnRequest, tier: Option<ModelTier>) -> OutputMode {
        let Some(output) = &request.output else {
            return OutputMode::Auto;
        };
        let of_model = || {
            self.agents
                .of(request)
                .chat
                .describe(tier.unwrap_or_default())
                .output_mode
        };
        let wanted = request.output_mode;
        let wanted = if wanted.is_auto() { of_model() } else { wanted };
        match wanted.or(OutputMode::Native) {
            OutputMode::Tool if !AnswerTool::fits(output) => OutputMode::Prompt,
            mode => mode,
        }
    }

    /// Returns the behavior that is configured for the model of a tier.
    pub(super) fn behavior(&self, request: &TurnRequest, tier: Option<ModelTier>) -> ModelBehavior {
        if self.behaviors.is_empty() {
            return ModelBehavior::default();
        }
        let model = self.agents.of(request).chat.model_of(tier.unwrap_or_default());
        model.map(|model| self.behaviors.of(&model)).unwrap_or_default()
    }

    /// Returns the live turn of a redelivered message, resuming it first if a crash interrupted it.
    async fn rejoin(self: &Arc<Self>, live: Arc<LiveTurn>) -> Result<Arc<LiveTurn>, TurnError> {
        if let Some(running) = self.find(live.id()) {
            // Its reply may be out, though the journal does not have its end yet.
            if let TurnState::Ended(outcome) = running.state() {
                return Ok(self.end_again(live, &outcome));
            }
            return Ok(running);
        }
        loop {
            // All turns are resumed, not this turn alone: its message may have joined an earlier turn
            // of its session.
            self.resume_all(Some(&live)).await?;
            if let Some(resumed) = self.find(live.id()) {
                return Ok(resumed);
            }
            match self.ended_or_elsewhere(live.clone()).await {
                // The call of a turn that was taken over waits for the process that has the child.
                Err(TurnError::Elsewhere(_)) if self.is_clustered() && live.request().parent.is_some() => {
                    let stopped = timeout(self.lease() / 3, self.closing.cancelled()).await;
                    if stopped.is_ok() {
                        return Err(TurnError::Halted);
                    }
                }
                ended => return ended,
            }
        }
    }

    /// Returns a turn that could not be resumed here, if it has ended meanwhile: perhaps with a
    /// failure, because it cannot be read.
    async fn ended_or_elsewhere(self: &Arc<Self>, live: Arc<LiveTurn>) -> Result<Arc<LiveTurn>, TurnError> {
        let state = self.journal.read(live.id()).await?.map(|run| run.state);
        let Some(RunState::Finished(outcome)) = state else {
            return Err(TurnError::Elsewhere(live.id().clone()));
        };
        Ok(self.end_known(live, &outcome))
    }

    /// Ends the copy of a message whose turn the journal knows as finished.
    fn end_known(&self, live: Arc<LiveTurn>, outcome: &RunBody) -> Arc<LiveTurn> {
        let outcome = Arc::new(read_outcome(live.id(), outcome));
        self.end_again(live, &outcome)
    }

    /// Ends the copy of a message whose turn has ended, and sends the reply again: the first reply
    /// may have been lost.
    fn end_again(&self, live: Arc<LiveTurn>, outcome: &Arc<TurnOutcome>) -> Arc<LiveTurn> {
        live.publish(TurnState::Ended(outcome.clone()));
        self.reply_again(&live, outcome);
        live
    }
}

/// The exclusive right to write the acceptance of one turn. Dropping it admits the next
/// acceptance.
///
/// The journal would refuse a second acceptance. But suppose that a redelivery came while the
/// first acceptance was being written: it could not tell a turn that is about to run here from a
/// turn that a crash interrupted, and would try to resume it.
struct AcceptanceGuard<'a> {
    turns: &'a AcceptingTurns,
    turn: TurnId,
}

impl<'a> AcceptanceGuard<'a> {
    async fn enter(turns: &'a AcceptingTurns, turn: TurnId) -> Self {
        while !turns.send_if_modified(|turns| turns.insert(turn.clone())) {
            let is_free = |turns: &DigestSet<TurnId>| !turns.contains(&turn);
            // Never fails: the sender lives as long as `turns`. If several acceptances wait, the
            // loop lets one in.
            let _ = turns.subscribe().wait_for(is_free).await;
        }
        Self { turns, turn }
    }
}

impl Drop for AcceptanceGuard<'_> {
    fn drop(&mut self) {
        self.turns.send_if_modified(|turns| turns.remove(&self.turn));
    }
}

/// Checks a request for values that no turn takes. Before the journal: a NaN cannot be read back
/// from JSON, and a resume would lose it.
pub(super) fn check(request: &TurnRequest) -> Result<(), TurnError> {
    check_ids(request)?;
    if let Some(settings) = &request.model_settings {
        settings.check()?;
    }
    request.content.check_bounds()?;
    Ok(request.check_history()?)
}

/// Checks the lengths of ids, which name files and stand in each record.
fn check_ids(request: &TurnRequest) -> Result<(), TurnError> {
    let recipient = request
        .recipient
        .as_ref()
        .map_or("", |recipient| recipient.session.as_str());
    let ids = [
        ("recipient", recipient),
        ("session", request.session.as_str()),
        ("principal", request.principal.as_str()),
        ("source", &request.source),
        ("id", request.message.as_str()),
    ];
    let too_long = ids.into_iter().find(|(_, id)| id.len() > MAX_ID_BYTES);
    too_long.map_or(Ok(()), |(what, id)| Err(TurnError::IdTooLong { what, len: id.len() }))
}

/// Returns the budget of work that outlives the turn which began it: no more calls, tokens and cost
/// than any turn of the host has. Its time is its own, since no turn waits for it.
fn bounded(mut budget: Budget, host: &Budget) -> Budget {
    budget.max_model_calls = budget.max_model_calls.min(host.max_model_calls);
    budget.max_tool_calls = budget.max_tool_calls.min(host.max_tool_calls);
    budget.max_tokens = budget.max_tokens.into_iter().chain(host.max_tokens).min();
    budget.max_cost = budget.max_cost.into_iter().chain(host.max_cost).min();
    budget
}

fn has_media(request: &TurnRequest) -> bool {
    let mut given = request.history.iter().flat_map(|messages| messages.iter());
    request.content.has_media() || given.any(|message| message.content.has_media())
}
