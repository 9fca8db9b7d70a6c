//! Asking the model.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{
    ChatCall, ChatError, ChatErrorKind, ChatRequest, ChatResponse, DeltaSink, ModelTier, ToolCall,
};
use rockbot_core::support::{loggable, run_until_stopped};
use rockbot_core::tool::{ToolInvokeRequest, ToolView};
use rockbot_core::turn::{BudgetLimit, JournalError, TurnProgress};
use tokio::time::{Instant, sleep_until};

use super::Drive;
use super::output_filter::Pieces;
use crate::turn::policy::higher;
use crate::turn::{CallFacts, Purpose, TurnEvent};

/// The time for a last answer when the turn's own time is used up.
const RESERVE: Duration = Duration::from_secs(30);

/// The time for a question aside: an answer must not wait long for its judge.
const ASIDE: Duration = Duration::from_secs(15);

impl Drive<'_> {
    pub(super) async fn ask(&mut self, purpose: &Purpose) -> Result<(), JournalError> {
        self.escalate(purpose)?;
        self.flush().await?;
        if matches!(purpose, Purpose::Conclude(_)) {
            self.deadline = Instant::now() + RESERVE;
            self.cx = self.lasting.clone().with_deadline(self.deadline);
        }
        // A model that is asked now might still answer before anybody looks at the time.
        if let Some(event) = self.stopped() {
            return self.feed(&event);
        }
        if matches!(purpose, Purpose::Retry(_) | Purpose::Continue { .. }) {
            self.live.progress().send(|| TurnProgress::Retract);
        }
        let pieces = self.pieces(purpose);
        let call = self.chat_call(purpose, pieces.as_ref().map(Pieces::sink));
        let (live, driver) = (self.live, self.driver);
        let (deadline, late) = self.until(purpose);
        let stop = async {
            tokio::select! {
                biased;
                () = live.stop().cancelled() => Some(TurnEvent::Cancelled(live.reason())),
                // The step stands in the journal: a resume asks again.
                () = driver.halt.cancelled() => None,
                () = sleep_until(deadline) => Some(late),
            }
        };
        let answer = {
            // Pinned here: a turn carries the call and the way to its end once then, not twice.
            let (asking, stop) = (pin!(driver.chat.ask(call)), pin!(stop));
            run_until_stopped(asking, stop).await
        };
        let event = match answer {
            Ok(answer) => {
                pieces.iter().for_each(Pieces::end);
                self.answered(answer, self.turn.tier_of(purpose.is_out_of_band()))
            }
            Err(Some(event)) => event,
            Err(None) => return Ok(()),
        };
        self.feed(&event)
    }

    /// Goes on with a more capable model where the work turned out hard. The decision stands in the journal, so a
    /// replay asks the same one.
    fn escalate(&mut self, purpose: &Purpose) -> Result<(), JournalError> {
        let Some((from, so_far)) = self.turn.may_escalate(purpose) else {
            return Ok(());
        };
        let router = self.driver.router.as_ref();
        let wanted = router.and_then(|router| router.escalate(self.turn.id(), from, so_far));
        let Some(tier) = higher(from, wanted) else {
            return Ok(());
        };
        let (from, to) = (from.name(), tier.name());
        metrics::counter!("rockbot.agent.tier_escalations", "from" => from, "to" => to).increment(1);
        let (turn, mutating, failed) = (self.turn.id(), so_far.mutating_calls, so_far.failed_calls);
        tracing::info!(%turn, mutating, failed, "Tier escalated {from}→{to} mid-turn");
        self.note(&TurnEvent::Escalated { tier }, false)
    }

    /// Until when the model may take, and what has happened when it takes longer.
    fn until(&self, purpose: &Purpose) -> (Instant, TurnEvent) {
        let aside = Instant::now() + ASIDE;
        match purpose.is_out_of_band() && aside < self.deadline {
            true => {
                let (kind, message) = (ChatErrorKind::TimedOut, "the judge took too long".to_owned());
                let overflow = None;
                (
                    aside,
                    TurnEvent::ModelFailed {
                        kind,
                        message,
                        overflow,
                    },
                )
            }
            false => (self.deadline, TurnEvent::BudgetSpent(BudgetLimit::WallClock)),
        }
    }

    /// Where the pieces of the answer go, if anybody listens to them.
    fn pieces(&self, purpose: &Purpose) -> Option<Pieces> {
        let progress = self.live.progress();
        let listens = progress.wants_deltas() && !purpose.is_out_of_band();
        listens.then(|| Pieces::new(progress.clone(), self.driver.filter_of(self.turn), self.turn))
    }

    fn chat_call(&mut self, purpose: &Purpose, deltas: Option<DeltaSink>) -> ChatCall {
        if let Some(aside) = self.turn.out_of_band(purpose) {
            let request = ChatRequest {
                tier: Some(self.turn.tier_of(true)),
                output: Some(aside.shape),
                ..ChatRequest::new(aside.messages)
            };
            return ChatCall {
                request: Arc::new(request),
                deltas: None,
                cx: self.cx.clone(),
            };
        }
        self.view = self.view.extended(&self.driver.tools.registry().snapshot());
        let request = self.turn.request();
        let tools = match purpose.has_tools() {
            true => self.view.clone(),
            false => ToolView::default(),
        };
        // Some servers never call a tool once the answer's shape is fixed, so it is fixed only without tools.
        let output = request.output.as_ref().filter(|_| tools.is_empty()).cloned();
        let request = ChatRequest {
            messages: self.turn.messages_for(purpose),
            tools,
            tier: self.turn.tier(),
            output,
            ..ChatRequest::default()
        };
        ChatCall {
            request: Arc::new(request),
            deltas,
            cx: self.cx.clone(),
        }
    }

    fn answered(&self, answer: Result<ChatResponse, ChatError>, tier: ModelTier) -> TurnEvent {
        match answer {
            Ok(mut response) => {
                self.account(&mut response, tier);
                let facts = response.tool_calls.iter().map(|call| self.facts(call)).collect();
                TurnEvent::ModelAnswered { response, facts }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&self, error: &ChatError) -> TurnEvent {
        if let Some(limit) = error.overflow().and_then(|overflow| overflow.limit) {
            self.driver.learn_window(self.turn.tier(), limit);
        }
        TurnEvent::ModelFailed {
            kind: error.kind(),
            message: error.to_string(),
            overflow: error.overflow(),
        }
    }

    /// Says in the answer what it cost, as far as somebody knows, and enters it.
    fn account(&self, response: &mut ChatResponse, tier: ModelTier) {
        let ledger = &self.driver.ledger;
        response.cost = ledger.cost_of(response);
        ledger.enter(&self.cx, tier, response);
        if response.cost.is_none() && self.turn.policy().budget.max_cost.is_some() {
            let (turn, model) = (self.turn.id(), response.model.as_deref().unwrap_or("unnamed"));
            let model = loggable(model);
            tracing::warn!(%turn, %model, "nobody knows what this answer cost: it does not count as money of the turn");
        }
    }

    fn facts(&self, call: &ToolCall) -> CallFacts {
        let request = ToolInvokeRequest {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments: call.arguments.clone(),
            session_id: self.turn.request().session.clone(),
        };
        match self.turn.tasks_before(call) {
            Some(tasks) => self
                .driver
                .tools
                .facts(&request, &self.cx.clone().with_extension(tasks)),
            None => self.driver.tools.facts(&request, &self.cx),
        }
    }
}
