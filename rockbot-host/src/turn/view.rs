//! What others see of a turn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatMessage, ModelTier, Provenance, Role, Spent, ToolCall, TurnSoFar};
use rockbot_core::context::{Trust, UntrustedSources};
use rockbot_core::turn::{TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{Timestamp, TurnId};

use super::call::CallState;
use super::event::{PolicySnapshot, Purpose, TurnEvent};
use super::machine::{Phase, Turn};
use super::policy::tasks::{self, TaskList};
use super::policy::{approval, escalate, evaluate, resume};

impl Turn {
    /// The turn's id.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// How capable a model it asks: what its message says, or what was selected for it, or what it went on with.
    pub fn tier(&self) -> Option<ModelTier> {
        self.request.tier.or(self.escalated).or(self.policy.tier)
    }

    /// The tier that was selected for it, if its message names none and somebody selects.
    pub fn selected_tier(&self) -> Option<ModelTier> {
        self.policy.tier.filter(|_| self.request.tier.is_none())
    }

    /// The tier that it went on with, when the selected one was too low.
    pub fn escalated_tier(&self) -> Option<ModelTier> {
        self.escalated
    }

    /// Its tier and what it did, if it may go on with a higher one when the model is asked for `purpose`.
    pub(crate) fn may_escalate(&self, purpose: &Purpose) -> Option<(ModelTier, TurnSoFar)> {
        let may = escalate::may(self.request.tier, self.policy.tier, self.so_far, purpose);
        may.then(|| (self.tier().unwrap_or_default(), self.so_far))
    }

    /// How capable a model answers: a cheap one for questions aside.
    pub(crate) fn tier_of(&self, is_out_of_band: bool) -> ModelTier {
        match is_out_of_band {
            true => ModelTier::Low,
            false => self.tier().unwrap_or_default(),
        }
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent.into_iter().sum()
    }

    /// The tiers that were asked, and what their answers cost.
    fn tiers(&self) -> impl Iterator<Item = (ModelTier, Spent)> {
        let tiers = ModelTier::ALL.into_iter().zip(self.spent);
        tiers.filter(|(_, spent)| spent.calls > 0)
    }

    /// Its settings.
    pub fn policy(&self) -> &PolicySnapshot {
        &self.policy
    }

    /// What started it.
    pub fn request(&self) -> &Arc<TurnRequest> {
        &self.request
    }

    /// The conversation as the model sees it.
    pub fn messages(&self) -> &[Arc<ChatMessage>] {
        &self.messages
    }

    /// The conversation as the model sees it when it is asked for `purpose`.
    pub fn messages_for(&self, purpose: &Purpose) -> Vec<Arc<ChatMessage>> {
        let closing = match purpose.has_tools() && self.has_tools {
            true => tasks::closing(self.reminder.as_deref(), &self.tasks),
            false => None,
        };
        let last = self.registry().into_iter().chain(closing).map(Arc::new);
        self.messages.iter().cloned().chain(last).collect()
    }

    /// What people said in this turn: its message, and those that joined it.
    pub fn said_by_user(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.request.text.as_str()).chain(self.joined_texts.iter().map(String::as_str))
    }

    /// Where the untrusted text came from that the model has read in this turn: tools, and what the host showed it. What it
    /// said itself in earlier turns stands in the conversation as its own words, whatever it had read then.
    pub(crate) fn untrusted_sources(&self) -> UntrustedSources {
        let tools = self.finished.iter().map(|call| &call.tool);
        let ended = self.calls.iter().filter(|call| call.is_finished());
        let tools = tools.chain(ended.map(|call| &call.call.name));
        let shown = self.messages.iter().filter(|message| message.role == Role::User);
        let shown = shown.flat_map(|message| &message.content).map(|part| &part.provenance);
        let shown =
            shown.filter(|provenance| provenance.trust == Trust::Untrusted && **provenance != Provenance::MODEL);
        let tools = tools.filter(|tool| !tasks::has_tool(tool.as_str()));
        let sources = tools.map(|tool| format!("tool:{tool}"));
        let sources: BTreeSet<_> = sources.chain(shown.map(|from| from.source.to_string())).collect();
        UntrustedSources(sources.into_iter().map(Arc::from).collect())
    }

    /// The calls of the model's last answer that have not been handed back to it.
    pub fn calls(&self) -> &[CallState] {
        &self.calls
    }

    /// The task list as it is when `call` runs: after those before it in the same answer. `None` when the call is about
    /// something else, or the turn keeps no list.
    pub(crate) fn tasks_before(&self, call: &ToolCall) -> Option<TaskList> {
        if !self.policy.task_list || !tasks::has_tool(call.name.as_str()) {
            return None;
        }
        let mut tasks = self.tasks.clone();
        let before = self.calls.iter().take_while(|state| state.call.id != call.id);
        let went_well = before.filter(|state| state.finished().is_none_or(|ended| !ended.is_error));
        went_well.for_each(|state| tasks.take_in(&state.call));
        Some(tasks)
    }

    /// How far what the model has read can be trusted: the least of all of it. Its own words of this turn do not count:
    /// they were made of the rest.
    pub fn content_trust(&self) -> Trust {
        self.content
    }

    /// How many calls have ended that were work, and not the model's own bookkeeping.
    pub(super) fn worked_calls(&self) -> usize {
        self.finished.iter().filter(|call| evaluate::is_work(call)).count()
    }

    /// The turns of messages that joined this one.
    pub fn joined(&self) -> &[TurnId] {
        &self.joined
    }

    /// Whether it has not begun: it waits for its session.
    pub fn is_new(&self) -> bool {
        self.phase == Phase::Accepted
    }

    /// Whether a message that joins just before `event` will reach the model.
    pub fn hears(&self, event: &TurnEvent) -> bool {
        let ends = matches!(
            event,
            TurnEvent::ModelFailed { .. } | TurnEvent::BudgetSpent(_) | TurnEvent::Cancelled(_)
        );
        let listens = match &self.phase {
            Phase::Asking(purpose) => purpose.has_tools() && self.ending.is_none(),
            Phase::Accepted | Phase::Calling(_) => self.ending.is_none(),
            Phase::Parked(_) | Phase::Done { .. } => false,
        };
        listens && !ends
    }

    /// Until when it waits for a person, if it does.
    pub fn parked_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Parked(until) => Some(until),
            _ => None,
        }
    }

    /// How long it worked so far, in all processes; waiting for its session or for a person does not count.
    pub(crate) fn worked(&self) -> Duration {
        self.worked
    }

    /// How long it may still work.
    pub fn time_left(&self) -> Duration {
        self.policy.budget.max_wall_clock.saturating_sub(self.worked)
    }

    /// The end of the turn, or where it waits for a person; `None` while it works.
    pub fn outcome(&self) -> Option<TurnOutcome> {
        let (status, text) = match &self.phase {
            Phase::Done { status, text } => (status.clone(), text.clone()),
            Phase::Parked(_) => {
                let asks = approval::asks(&self.id, &self.calls);
                let text = approval::waiting_text(&asks);
                (TurnStatus::Parked(asks), text)
            }
            Phase::Accepted | Phase::Asking(_) | Phase::Calling(_) => return None,
        };
        Some(self.ended_with(status, text))
    }

    /// The outcome of a turn that ended like this, with what it did and cost so far.
    pub fn ended_with(&self, status: TurnStatus, text: String) -> TurnOutcome {
        TurnOutcome {
            turn: self.id.clone(),
            status,
            text,
            usage: self.spent().usage,
            model_calls: self.model_calls,
            tiers: self.tiers().collect(),
            calls: self.finished_calls(),
        }
    }

    /// The end of a turn that its journal cannot tell how to go on with.
    pub fn unreadable(id: TurnId) -> TurnOutcome {
        let status = TurnStatus::Failed(TurnFailure::UnknownVersion);
        TurnOutcome::new(id, status, resume::UNKNOWN_VERSION)
    }
}
