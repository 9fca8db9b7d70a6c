//! The read side of a turn: its settings, its conversation, its outcome.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{
    ChatMessage, Content, ContentPart, MicroUsd, ModelSettings, ModelTier, Provenance, Role, Spent, ToolCall,
};
use rockbot_core::store::EndorsedValue;
use rockbot_core::trust::{Label, Trust};
use rockbot_core::turn::{
    Budget, LoopDecision, LoopPoint, TurnFailure, TurnOutcome, TurnRequest, TurnSoFar, TurnStatus, TurnView,
};
use rockbot_core::{CallContext, Timestamp, TurnId};

use super::{Phase, Turn};
use crate::turn::call::{CallState, CallStatus};
use crate::turn::event::{TurnEvent, Validation};
use crate::turn::policy::tasks::{self, TaskList};
use crate::turn::policy::{approval, budget, ending, escalate, resume};
use crate::turn::settings::PolicySnapshot;
use crate::turn::step::{Consultation, Purpose};

impl Turn {
    /// Returns the turn's id.
    pub(crate) fn id(&self) -> &TurnId {
        &self.id
    }

    /// Returns the tier of the turn's questions: the tier that its message names, else the tier
    /// that it was raised to, else the selected tier. `None` leaves the tier to the chat client.
    pub(crate) fn tier(&self) -> Option<ModelTier> {
        self.request.tier.or(self.escalated).or(self.policy.tier)
    }

    /// Returns the tier that the selector chose; `None` when the message names one, or the host has
    /// no selector.
    pub(crate) fn selected_tier(&self) -> Option<ModelTier> {
        self.policy.tier.filter(|_| self.request.tier.is_none())
    }

    /// Returns the tier that the turn was raised to because the selected tier was too low.
    pub(crate) fn escalated_tier(&self) -> Option<ModelTier> {
        self.escalated
    }

    /// Returns the turn's tier and its activity so far, if the tier may be raised before a question
    /// for `purpose`.
    pub(crate) fn may_escalate(&self, purpose: &Purpose) -> Option<(ModelTier, TurnSoFar)> {
        let may = escalate::may(self.request.tier, self.policy.tier, self.activity, purpose);
        may.then(|| (self.tier().unwrap_or_default(), self.activity))
    }

    /// Returns the tier of a question: the lowest one for out-of-band questions.
    pub(crate) fn tier_of(&self, is_out_of_band: bool) -> ModelTier {
        if is_out_of_band {
            ModelTier::Low
        } else {
            self.tier().unwrap_or_default()
        }
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent.into_iter().sum()
    }

    /// Returns the tiers that were asked, each with the cost of its answers.
    fn tiers(&self) -> impl Iterator<Item = (ModelTier, Spent)> {
        let tiers = ModelTier::ALL.into_iter().zip(self.spent);
        tiers.filter(|(_, spent)| spent.calls > 0)
    }

    /// Returns the settings that the turn was accepted with.
    pub(crate) fn policy(&self) -> &PolicySnapshot {
        &self.policy
    }

    /// Returns the request that began the turn.
    pub(crate) fn request(&self) -> &Arc<TurnRequest> {
        &self.request
    }

    /// Replaces the content of the user's message before the turn begins.
    pub(crate) fn replace_input(&mut self, content: Content) {
        Arc::make_mut(&mut self.request).content = content;
        self.has_other_input = true;
    }

    /// Returns the content of the user's message, if guardrails replaced it.
    pub(crate) fn replaced_input(&self) -> Option<&Content> {
        self.has_other_input.then_some(&self.request.content)
    }

    /// Returns the settings of the model for the turn's next request, where its message has some.
    ///
    /// A tool choice that forces a call holds until the turn's first call: later it would keep the
    /// model from answering.
    pub(crate) fn model_settings(&self) -> Option<Arc<ModelSettings>> {
        let settings = self.request.model_settings.as_ref()?;
        if self.tool_calls == 0 || !settings.forces_tool_call() {
            return Some(settings.clone());
        }
        let mut settings = ModelSettings::clone(settings);
        settings.tool_choice = None;
        settings.shared()
    }

    /// Returns the conversation as the model reads it, without the messages that are made for each
    /// request.
    pub(crate) fn messages(&self) -> &[Arc<ChatMessage>] {
        &self.messages
    }

    /// Returns the messages that the turn added to its context: answers, calls and results.
    pub(crate) fn own_messages(&self) -> &[Arc<ChatMessage>] {
        self.messages.get(self.context_len..).unwrap_or_default()
    }

    /// Returns `true` for a call about the turn's own task list.
    fn is_about_tasks(&self, call: &ToolCall) -> bool {
        self.policy.task_list && tasks::has_tool(call.name.as_str())
    }

    /// Returns `true` for a call of a tool of the host's own: a tool of the task list, or the tool
    /// that activates groups of tools.
    pub(crate) fn is_own_call(&self, call: &ToolCall) -> bool {
        self.is_about_tasks(call) || self.is_activation(&call.id)
    }

    /// Returns the messages of a request for `purpose`: the conversation, then the registry of
    /// removed parts, then the reminder and the task list.
    ///
    /// Text that changes from request to request stands at the end, so the provider's prompt cache
    /// of the rest stays valid.
    pub(crate) fn messages_for(&self, purpose: &Purpose) -> Vec<Arc<ChatMessage>> {
        let closing = if purpose.has_tools() && self.has_tools {
            tasks::closing(self.reminder.as_deref(), &self.tasks)
        } else {
            None
        };
        let last = self.registry().into_iter().chain(closing).map(Arc::new);
        self.messages.iter().cloned().chain(last).collect()
    }

    /// Returns the content of the user's messages of this turn: its own message, then the messages
    /// that joined it.
    pub(crate) fn said_by_user(&self) -> impl Iterator<Item = &Content> {
        std::iter::once(&self.request.content).chain(&self.joined_content)
    }

    /// Returns the calls of the model's last answer whose results are not in the conversation yet.
    pub(crate) fn calls(&self) -> &[CallState] {
        &self.calls
    }

    /// Returns the task list as it is when `call` runs: after the calls before it in the same answer.
    /// `None` when the call is not of the task list, or the turn keeps none.
    pub(crate) fn tasks_before(&self, call: &ToolCall) -> Option<TaskList> {
        if !self.policy.task_list || !tasks::has_tool(call.name.as_str()) {
            return None;
        }
        let mut tasks = self.tasks.clone();
        let before = self.calls.iter().take_while(|state| state.call.id != call.id);
        // Calls of one group run concurrently, so an earlier call may not have ended: it is taken
        // to succeed.
        let succeeded = before.filter(|state| state.finished().is_none_or(|ended| !ended.is_error));
        succeeded.for_each(|state| tasks.apply(&state.call));
        Some(tasks)
    }

    /// Returns the label of everything that the model has read.
    ///
    /// The model's own words of this turn do not count, since they were made of the rest.
    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    /// Returns the view for hooks of a turn that works in the context `cx`.
    pub(crate) fn view(&self, cx: CallContext) -> TurnView {
        TurnView::new(self.request.clone())
            .with_context(cx)
            .with_messages(self.messages.as_slice())
            .with_calls(self.finished_calls())
            .with_tasks(self.tasks.view())
            .with_activity(self.model_calls, self.tool_calls, self.spent())
            .with_budget(self.policy.budget, self.time_left())
    }

    /// Returns the point of the loop where policies are asked about `about`.
    pub(crate) fn loop_point(&self, about: &Consultation) -> LoopPoint {
        match (about, &self.consultations.response) {
            (Consultation::AfterAnswer(_), Some(response)) => LoopPoint::AfterAnswer(response.clone()),
            (Consultation::AfterResults, _) => {
                let results = self.calls.iter().filter_map(|state| match &state.status {
                    CallStatus::Finished(response) => Some(response.clone()),
                    _ => None,
                });
                LoopPoint::AfterResults(results.collect())
            }
            _ => LoopPoint::BeforeRequest,
        }
    }

    /// Returns the message of the turn, if a trusted user wrote all of it, and it is text alone.
    pub(crate) fn own_words(&self) -> Option<Arc<str>> {
        let is_own = |part: &ContentPart| part.provenance().is_unknown() || part.provenance().trust > Trust::Untrusted;
        let content = &self.request.content;
        let is_users = self.request.trust > Trust::Untrusted && content.parts().iter().all(is_own);
        // A result is a message of the host, with words of a model.
        let is_users = is_users && self.request.result_of.is_none();
        content
            .as_text()
            .filter(|_| is_users && !self.has_other_input)
            .map(Arc::from)
    }

    /// Returns the values that the user has endorsed for the conversation.
    pub(crate) fn endorsed(&self) -> &[EndorsedValue] {
        &self.endorsed
    }

    /// Returns the turns of messages that joined this turn.
    pub(crate) fn joined(&self) -> &[TurnId] {
        &self.joined
    }

    /// Returns `true` while the turn waits for its session.
    pub(crate) fn is_new(&self) -> bool {
        self.phase == Phase::Accepted
    }

    /// Returns `true` if a message that joins just before `event` will still reach the model.
    ///
    /// Otherwise the turn is ending, and the message must become a turn of its own.
    pub(crate) fn can_join_before(&self, event: &TurnEvent) -> bool {
        let ends = matches!(
            event,
            TurnEvent::ModelFailed { .. }
                | TurnEvent::BudgetSpent(_)
                | TurnEvent::Cancelled(_)
                | TurnEvent::InputRefused { .. }
                | TurnEvent::Failed { .. }
                | TurnEvent::Consulted {
                    decision: LoopDecision::Answer(_) | LoopDecision::Fail(_),
                    ..
                }
                | TurnEvent::Validated {
                    verdict: Validation::Accepted | Validation::Unasked | Validation::Failed(_),
                    ..
                }
        );
        let asks_again = match &self.phase {
            Phase::Asking(purpose) | Phase::Consulting(Consultation::AfterAnswer(purpose)) => {
                purpose.has_tools() && self.end_reason.is_none()
            }
            Phase::Accepted | Phase::Calling(_) | Phase::Consulting(_) => self.end_reason.is_none(),
            Phase::Validating { status, .. } => self.may_correct(status),
            Phase::Parked(_) | Phase::Done { .. } => false,
        };
        asks_again && !ends
    }

    /// Returns the expiry of the approval, if the turn waits for a user's decision.
    pub(crate) fn parked_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Parked(until) => Some(until),
            _ => None,
        }
    }

    /// Returns the time that the turn has worked in all processes, without waiting for its session or
    /// for a user.
    pub(crate) fn worked(&self) -> Duration {
        self.worked
    }

    /// Returns the time that the turn may still work.
    pub(crate) fn time_left(&self) -> Duration {
        self.policy.budget.max_wall_clock.saturating_sub(self.worked)
    }

    /// Returns `true` if the budget may not suffice for the work after `event`.
    pub(crate) fn runs_short_after(&self, event: &TurnEvent) -> bool {
        let (answered, wanted) = match event {
            TurnEvent::ModelAnswered { response, .. } => (1, response.tool_calls.len()),
            TurnEvent::ToolReturned(_) => (0, 0),
            _ => return false,
        };
        let budget = &self.policy.budget;
        budget::model_calls(budget, self.model_calls.saturating_add(answered), &self.spent()).is_some()
            || budget::tool_calls(budget, self.tool_calls, wanted).is_some()
    }

    /// Returns the part of the budget that is not used up.
    pub(crate) fn budget_left(&self) -> Budget {
        let budget = &self.policy.budget;
        let spent = self.spent();
        let tokens = |max: u64| max.saturating_sub(spent.usage.total());
        let cost = |max: MicroUsd| MicroUsd(max.0.saturating_sub(spent.cost.0));
        Budget::default()
            .with_max_model_calls(budget.max_model_calls.saturating_sub(self.model_calls))
            .with_max_tool_calls(budget.max_tool_calls.saturating_sub(self.tool_calls))
            .with_max_wall_clock(self.time_left())
            .with_max_tokens(budget.max_tokens.map(tokens))
            .with_max_cost(budget.max_cost.map(cost))
    }

    /// Returns the outcome of a turn that has ended, or that waits for a user's decision; `None`
    /// while it works.
    pub(crate) fn outcome(&self) -> Option<TurnOutcome> {
        let (status, text) = match &self.phase {
            Phase::Done { status, text } => (status.clone(), text.clone()),
            Phase::Parked(_) => {
                let asks = approval::asks(&self.id, &self.calls);
                let text = approval::waiting_text(&asks);
                (TurnStatus::Parked(asks), text)
            }
            _ => return None,
        };
        let mut outcome = self.ended_with(status, text);
        if outcome.is_answer() {
            outcome.media.clone_from(&self.answer_media);
        }
        Some(outcome)
    }

    /// Reports whether the text that ended the turn has words of a model or of tools. A refusal,
    /// and the reply of a turn whose last answer failed, have words of the host or its program
    /// alone.
    pub(crate) fn ends_with_foreign_text(&self) -> bool {
        match &self.phase {
            Phase::Done { status, text } => match status {
                TurnStatus::Answered | TurnStatus::Failed(TurnFailure::NoAnswer) => true,
                TurnStatus::Partial(_) => *text == self.last_answer(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the outcome of a turn that fails outside of the machine: its text says which calls
    /// were done before.
    pub(crate) fn failed_with(&self, failure: TurnFailure, text: &str) -> TurnOutcome {
        let text = format!("{text}{}", ending::done_before(text, &self.finished_calls()));
        self.ended_with(TurnStatus::Failed(failure), text)
    }

    /// Returns the outcome of a turn that ends with `status` and `text`, with its calls and its cost
    /// so far.
    pub(crate) fn ended_with(&self, status: TurnStatus, text: String) -> TurnOutcome {
        let mut outcome = TurnOutcome::new(self.id.clone(), status, text);
        outcome.usage = self.spent().usage;
        outcome.model_calls = self.model_calls;
        outcome.tiers = self.tiers().collect();
        outcome.calls = self.finished_calls();
        outcome.label.clone_from(&self.label);
        outcome
    }

    /// Returns the outcome of a turn whose journal this version cannot read.
    pub(crate) fn unreadable(id: TurnId) -> TurnOutcome {
        let status = TurnStatus::Failed(TurnFailure::UnknownVersion);
        TurnOutcome::new(id, status, resume::UNKNOWN_VERSION)
    }

    /// Returns the text of the model's last message; empty before its first message.
    pub(crate) fn last_answer(&self) -> String {
        let mut answers = self.messages.iter().rev();
        let last = answers.find(|message| message.role == Role::Assistant);
        last.map(|message| message.text().into_owned()).unwrap_or_default()
    }
}

/// Returns the content of a message with no more trust than its sender has. A user's text states
/// no origin, which is the default of its place.
pub(crate) fn from_sender(content: Content, request: &TurnRequest) -> Content {
    let made_of = request.label.as_ref().filter(|label| label.is_untrusted());
    match (made_of, request.trust) {
        (Some(label), _) => content.attributed(Provenance::labelled("user", label)),
        (None, Trust::Untrusted) => content.attributed(Provenance::of_sender(Trust::Untrusted)),
        (None, trust) => content.trusted_at_most(trust),
    }
}
