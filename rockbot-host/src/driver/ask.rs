//! The step that asks the model.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{
    ChatCall, ChatError, ChatErrorKind, ChatRequest, ChatResponse, DeltaSink, MicroUsd, ModelSettings, ModelTier,
    ToolCall,
};
use rockbot_core::support::{loggable, run_until_stopped};
use rockbot_core::tool::{ToolInvokeRequest, ToolView};
use rockbot_core::trust::Trust;
use rockbot_core::turn::{BudgetLimit, JournalError, TurnProgress, ValueOrigin};
use tokio::time::{Instant, sleep_until};

use super::output_filter::AnswerStream;
use super::{Drive, TurnDriver};
use crate::live::LiveTurn;
use crate::turn::policy::higher;
use crate::turn::{CallFacts, Purpose, TurnEvent};

/// Time for a concluding answer after the turn's own time is used up.
const CONCLUSION_TIME: Duration = Duration::from_secs(30);

/// Maximum time for an out-of-band question: an answer must not wait long for its judge.
const OUT_OF_BAND_TIME: Duration = Duration::from_secs(15);

/// Maximum number of tokens of a judge's verdict: a sentence, and the thoughts of a model that
/// thinks.
const MAX_VERDICT_TOKENS: u32 = 1_000;

/// Waits for an event that stops a question, and returns it; `None` when the host stops.
async fn stop_of(live: &LiveTurn, driver: &TurnDriver, deadline: Instant, on_deadline: TurnEvent) -> Option<TurnEvent> {
    tokio::select! {
        // In order: a cancelled turn ends for good, so it must not be left to a resume.
        biased;
        () = live.cancellation().cancelled() => Some(TurnEvent::Cancelled(live.cancel_reason())),
        // The step is in the journal, so a resume asks again.
        () = driver.halt.cancelled() => None,
        () = sleep_until(deadline) => Some(on_deadline),
    }
}

impl Drive<'_> {
    /// Asks the model and feeds its answer, its failure, or the event that stopped it.
    pub(super) async fn ask(&mut self, purpose: &Purpose) -> Result<(), JournalError> {
        if !self.may_ask(purpose).await? {
            return Ok(());
        }
        let stream = self.answer_stream(purpose);
        let mut call = self.chat_call(purpose, stream.as_ref().map(AnswerStream::sink));
        let mut messages = call.request.messages.iter();
        if messages.any(|message| message.content.has_stored_media()) {
            Box::pin(self.resolve_media(&mut call)).await;
        }
        let live = self.live;
        let driver = self.driver;
        let chat = &self.agent.chat;
        let (deadline, on_deadline) = self.deadline_of(purpose);
        let stop = stop_of(live, driver, deadline, on_deadline);
        let answer = {
            // Cancel point: the call is dropped when `stop` wins, as it was promised to the client. Both are
            // pinned in this block, so the future of a turn has room for them once; moved into a combinator
            // they would be in it twice.
            let asking = pin!(chat.ask(call));
            let stop = pin!(stop);
            run_until_stopped(asking, stop).await
        };
        let event = match answer {
            Ok(mut answer) => {
                if let Ok(answer) = &mut answer
                    && !answer.media.is_empty()
                {
                    Box::pin(driver.media.keep_answer(self.cx.principal(), answer)).await;
                }
                stream.iter().for_each(AnswerStream::finish);
                let mut event = self.answered(answer, self.turn.tier_of(purpose.is_out_of_band()));
                if self.turn.label().is_untrusted()
                    && let TurnEvent::ModelAnswered {
                        response,
                        facts,
                        origins,
                    } = &mut event
                {
                    // Boxed, and only for turns that have read text of others: most futures need no room for it.
                    *origins = Box::pin(self.ask_endorsements(&response.tool_calls, facts)).await;
                }
                self.ask_approver(&mut event);
                self.expect_no_approvals(&mut event);
                event
            }
            Err(stop) => {
                self.cut_off(purpose, stream.as_ref());
                let Some(event) = stop else { return Ok(()) };
                event
            }
        };
        self.feed(event);
        Ok(())
    }

    /// Does the work before a question: escalation, history processors, the record. Returns `false`
    /// if the turn ends instead.
    async fn may_ask(&mut self, purpose: &Purpose) -> Result<bool, JournalError> {
        self.escalate(purpose);
        // Boxed: every turn's future would have room for it otherwise, and few hosts have processors.
        let is_program = self.agent.is_program;
        if !is_program && !self.driver.hooks.history.is_empty() && !Box::pin(self.process_history(purpose)).await? {
            return Ok(false);
        }
        // A program reads no descriptions.
        if purpose.has_tools() && !is_program {
            self.read_tools();
        }
        // Write-ahead: the decision to ask is durable before a provider is paid for the answer.
        self.flush().await?;
        if matches!(purpose, Purpose::Conclude(_)) {
            self.deadline = Instant::now() + CONCLUSION_TIME;
            self.cx = self.lasting.clone().with_deadline(self.deadline);
        }
        // Checked before the call as well: a model that answers at once would win against a deadline
        // that has passed.
        if let Some(event) = self.stop_event() {
            self.feed(event);
            return Ok(false);
        }
        if purpose.retracts() {
            self.live.progress().send(|| TurnProgress::Retract);
            tracing::info!(turn = %self.turn.id(), ?purpose, "the model is asked once more");
        }
        Ok(true)
    }

    /// Escalates to a more capable model where the turn turned out to be hard. The decision is
    /// recorded, so a replay asks the same model without asking the selector.
    fn escalate(&mut self, purpose: &Purpose) {
        let Some((from, so_far)) = self.turn.may_escalate(purpose) else {
            return;
        };
        let router = self.driver.router.as_ref();
        let wanted = router.and_then(|router| router.escalate(self.turn.id(), from, so_far));
        let Some(tier) = higher(from, wanted) else {
            return;
        };
        let from = from.name();
        let to = tier.name();
        metrics::counter!("rockbot.agent.tier_escalations", "from" => from, "to" => to).increment(1);
        let turn = self.turn.id();
        let mutating = so_far.mutating_calls;
        let failed = so_far.failed_calls;
        tracing::info!(%turn, mutating, failed, "Tier escalated {from}→{to} mid-turn");
        self.note(TurnEvent::Escalated { tier }, false);
    }

    /// Returns the deadline of a call to the model, and the event that it causes when it passes.
    fn deadline_of(&self, purpose: &Purpose) -> (Instant, TurnEvent) {
        let out_of_band = Instant::now() + OUT_OF_BAND_TIME;
        if purpose.is_out_of_band() && out_of_band < self.deadline {
            let message = "the judge model exceeded its time limit".to_owned();
            let timed_out = TurnEvent::ModelFailed {
                kind: ChatErrorKind::TimedOut,
                message,
                overflow: None,
            };
            (out_of_band, timed_out)
        } else {
            (self.deadline, TurnEvent::BudgetSpent(BudgetLimit::WallClock))
        }
    }

    /// Returns the stream that reports the answer piece by piece, if the caller listens to pieces.
    /// Out-of-band answers are never reported.
    fn answer_stream(&self, purpose: &Purpose) -> Option<AnswerStream> {
        let progress = self.live.progress();
        let listens = progress.wants_deltas() && !purpose.is_out_of_band();
        listens.then(|| self.driver.output.stream(progress.clone(), self.turn))
    }

    fn chat_call(&mut self, purpose: &Purpose, deltas: Option<DeltaSink>) -> ChatCall {
        if let Some(question) = self.turn.out_of_band(purpose) {
            let tier = self.turn.tier_of(true);
            // The question states the shape in words, too, for models that take no schema.
            let takes_schema = self.agent.chat.describe(tier).output_mode.allows_native();
            let settings = ModelSettings::new()
                .with_temperature(0.0)
                .with_max_output_tokens(MAX_VERDICT_TOKENS);
            let request = ChatRequest::new(question.messages)
                .with_tier(tier)
                .with_output(takes_schema.then_some(question.shape))
                .with_settings(settings);
            return ChatCall::new(request, self.with_reporter(self.cx.clone(), None)).with_supervision(true);
        }
        self.extend_view();
        let request = self.turn.request();
        let tools = if purpose.has_tools() {
            self.view.clone()
        } else {
            ToolView::default()
        };
        // Some servers never call a tool once the answer's schema is fixed, so it is fixed only without
        // tools.
        let is_fixed = tools.is_empty() && self.turn.policy().output_mode.allows_native();
        let output = request.output.as_ref().filter(|_| is_fixed).cloned();
        let mut request = ChatRequest::new(self.turn.messages_for(purpose))
            .with_tools(tools)
            .with_tier(self.turn.tier())
            .with_output(output);
        request.settings = self.turn.model_settings();
        if let Some(answer) = &self.answer_tool {
            answer.require(&mut request);
        }
        ChatCall::new(request, self.with_reporter(self.cx.clone(), None))
            .with_deltas(deltas)
            .with_cache(self.requests.clone())
            .with_supervision(true)
    }

    /// Labels the turn by the descriptions of the tools that were registered since it began.
    fn read_tools(&mut self) {
        let text = self.driver.tools.text_label(self.turn.request().tools.as_ref());
        if !text.is_untrusted() {
            return;
        }
        let mut label = self.turn.label().clone();
        label.join(&text);
        if label != *self.turn.label() {
            self.note(TurnEvent::ToolsTold { label: text }, false);
        }
    }

    /// Adds the tools to the view that are new in the registry, and the tools of groups that became
    /// active.
    fn extend_view(&mut self) {
        let tools = &self.driver.tools;
        let active = self.turn.active_tools();
        // A turn is usually shown the same tools in all its requests, which costs two comparisons.
        let is_same = tools.registry().snapshot().generation() == self.view.generation();
        if !is_same || active.len() != self.viewed_groups {
            self.view = tools.extended(self.turn.request().tools.as_ref(), &self.view, active);
            self.viewed_groups = active.len();
        }
    }

    /// Gives the request the bytes of the images and files that its messages refer to.
    async fn resolve_media(&mut self, call: &mut ChatCall) {
        let request = Arc::make_mut(&mut call.request);
        let media = &self.driver.media;
        media
            .resolve(self.cx.principal(), &mut request.messages, &mut self.resolved)
            .await;
    }

    /// Counts a call that was dropped before its answer was complete: the provider is paid for it.
    fn cut_off(&mut self, purpose: &Purpose, stream: Option<&AnswerStream>) {
        let received = stream.map_or(0, AnswerStream::received);
        let usage = self.turn.estimated_usage(purpose, received);
        let tier = self.turn.tier_of(purpose.is_out_of_band());
        let mut response = ChatResponse::default().with_usage(usage);
        response.model = self.agent.chat.model_of(tier);
        response.cost = self.driver.ledger.cost_of(&response);
        self.driver.ledger.enter(&self.cx, tier, &response);
        let cost = response.cost;
        self.note(TurnEvent::ModelCutOff { usage, cost }, false);
    }

    fn answered(&self, answer: Result<ChatResponse, ChatError>, tier: ModelTier) -> TurnEvent {
        match answer {
            Ok(mut response) => {
                self.account(&mut response, tier);
                self.take_final_answer(&mut response);
                let facts = response.tool_calls.iter().map(|call| self.facts(call)).collect();
                TurnEvent::ModelAnswered {
                    response,
                    facts,
                    origins: Vec::new(),
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Takes the call that gives the answer, if the response has one, as the text of the answer.
    fn take_final_answer(&self, response: &mut ChatResponse) {
        let is_taken = self.answer_tool.as_ref().is_some_and(|answer| answer.take(response));
        let progress = self.live.progress();
        if is_taken && progress.wants_deltas() {
            // The pieces of a call's arguments are no pieces of a text: readers get the answer at once.
            progress.send(|| TurnProgress::Delta(response.text.clone()));
        }
    }

    fn failed(&self, error: &ChatError) -> TurnEvent {
        if let Some(limit) = error.overflow().and_then(|overflow| overflow.limit) {
            self.agent.windows.learn(self.turn.tier(), limit);
        }
        TurnEvent::ModelFailed {
            kind: error.kind(),
            message: error.to_string(),
            overflow: error.overflow(),
        }
    }

    /// Sets the cost of the answer, where it is known, and enters it in the ledger.
    fn account(&self, response: &mut ChatResponse, tier: ModelTier) {
        if self.agent.is_program {
            // Models that it asked are in the ledger already.
            response.cost = response.cost.or(Some(MicroUsd(0)));
            return;
        }
        let tier = response.tier.unwrap_or(tier);
        let ledger = &self.driver.ledger;
        response.cost = ledger.cost_of(response);
        ledger.enter(&self.cx, tier, response);
        if let Some(usage) = response.usage {
            self.agent.windows.check(tier, usage.input);
        }
        if response.cost.is_none() && self.turn.policy().budget.max_cost.is_some() {
            let turn = self.turn.id();
            let model = loggable(response.model.as_deref().unwrap_or("unnamed"));
            tracing::warn!(
                %turn,
                %model,
                "the price of the model is unknown, so the turn ends at its limit in money; \
                 give its price with `.prices(…)`"
            );
        }
    }

    /// Makes calls wait for a person's approval that the user's own words do not ask for, although
    /// the model has read text of others. Returns the origins of their values, in the order of the
    /// calls. An untrusted sender cannot approve anything: the guard refuses its calls at once.
    async fn ask_endorsements(&mut self, calls: &[ToolCall], facts: &mut [CallFacts]) -> Vec<Vec<ValueOrigin>> {
        self.relabel();
        if calls.is_empty() || self.turn.request().trust == Trust::Untrusted {
            return Vec::new();
        }
        let may_doubt =
            |(call, facts): (&ToolCall, &CallFacts)| self.driver.tools.may_doubt(&call.name, facts.effect, &self.cx);
        if !calls.iter().zip(&*facts).any(may_doubt) {
            return Vec::new();
        }
        let cx = self.cx.clone().with_extension(self.read_messages());
        let mut origins = Vec::with_capacity(calls.len());
        for (call, facts) in calls.iter().zip(facts) {
            let request = self.tool_request(call);
            let doubts = self.driver.tools.doubts(&request, facts.effect, &cx).await;
            facts.needs_approval |= doubts.is_some();
            origins.push(doubts.unwrap_or_default());
        }
        if origins.iter().all(Vec::is_empty) {
            Vec::new()
        } else {
            origins
        }
    }

    /// Makes calls that change something outside wait for the approver of a message that only
    /// informs, if the message names an approver. Otherwise the guard refuses these calls.
    fn ask_approver(&self, event: &mut TurnEvent) {
        let request = self.turn.request();
        if !request.is_informing || request.approver.is_none() {
            return;
        }
        let TurnEvent::ModelAnswered { response, facts, .. } = event else {
            return;
        };
        for (call, facts) in response.tool_calls.iter().zip(facts) {
            let request = self.tool_request(call);
            facts.needs_approval |= self.driver.tools.is_unasked(&request, facts.effect, &self.cx);
        }
    }

    /// Lets no call wait for a person on a host without one: the guard refuses the calls that need
    /// an approval.
    fn expect_no_approvals(&self, event: &mut TurnEvent) {
        if self.turn.policy().has_no_approver
            && let TurnEvent::ModelAnswered { facts, .. } = event
        {
            facts.iter_mut().for_each(|facts| facts.needs_approval = false);
        }
    }

    fn tool_request(&self, call: &ToolCall) -> ToolInvokeRequest {
        ToolInvokeRequest::new(call.id.clone(), call.name.clone(), call.arguments.clone())
            .with_session_id(self.turn.request().session.clone())
    }

    /// Asks the tool for the facts about a call. This is the only time: the turn records them,
    /// decides by them, and carries them to the dispatcher and to the handling of the result.
    fn facts(&self, call: &ToolCall) -> CallFacts {
        let request = self.tool_request(call);
        match self.turn.tasks_before(call) {
            Some(tasks) => self
                .driver
                .tools
                .facts(&request, &self.cx.clone().with_extension(tasks)),
            None => self.driver.tools.facts(&request, &self.cx),
        }
    }
}
