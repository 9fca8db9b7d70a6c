//! Tool calls of a turn: from the model's answer through approval and groups to their results in
//! the conversation.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::CallId;
use rockbot_core::Timestamp;
use rockbot_core::chat::{ChatMessage, ChatResponse, MicroUsd, Provenance, Spent, Usage};
use rockbot_core::content::Content;
use rockbot_core::store::EndorsedValue;
use rockbot_core::tool::{Effect, ToolErrorCode, ToolInvokeResponse};
use rockbot_core::trust::Trust;
use rockbot_core::turn::{Approval, BudgetLimit, DelegatedWork, FinishedCall, ValueOrigin};

use super::{EndReason, Phase, Turn, media_of};
use crate::turn::call::{CallFacts, CallState, CallStatus};
use crate::turn::policy::repeat::{self, Verdict};
use crate::turn::policy::{approval, budget, ending, identity, is_work, parallel};
use crate::turn::step::{RepeatedCall, TurnStep};

/// Maximum number of values that a user endorses in a conversation.
const MAX_ENDORSED: usize = 64;

impl Turn {
    /// Runs the calls of the model's answer, or waits for a user's approval first.
    pub(super) fn call_or_park(&self, at: Timestamp) -> Vec<TurnStep> {
        if self.end_reason.is_some() {
            return self.after_calls();
        }
        // Before any user is asked about a call that would not run.
        if let Some(steps) = self.stop_loop(at) {
            return steps;
        }
        let asks = approval::asks(&self.id, &self.calls);
        if asks.is_empty() {
            return self.after_calls();
        }
        let until = match self.phase {
            // One decision of several came in: the deadline stays as it was announced.
            Phase::Parked(until) => until,
            _ => at.after(self.policy.approval_expiry),
        };
        vec![TurnStep::AwaitApproval { asks, until }]
    }

    /// Refuses the calls of a model that goes in circles, or ends the turn; `None` when it does not.
    fn stop_loop(&self, at: Timestamp) -> Option<Vec<TurnStep>> {
        let waiting = |state: &&CallState| matches!(state.status, CallStatus::Waiting { granted: false });
        let verdict = |state: &CallState| Some((state.call.id.clone(), self.repeats.verdict(&state.call)?));
        let watched = self.policy.nudges.on_repeated_calls.then_some(&self.calls);
        let calls = watched.into_iter().flatten().filter(waiting);
        let verdicts: Vec<_> = calls.filter_map(verdict).collect();
        let refused = verdicts.into_iter().map(|(call, verdict)| match verdict {
            Verdict::Refuse(earlier) => Some(RepeatedCall { call, earlier }),
            Verdict::End => None,
        });
        let Some(refused) = refused.collect::<Option<Vec<_>>>() else {
            return Some(self.end_early(EndReason::Limit(BudgetLimit::Repetition)));
        };
        if refused.is_empty() {
            return None;
        }
        let refusal = TurnStep::RefuseRepeats(refused);
        // The steps that follow are decided on the state after the refusal. A copy is affordable: this
        // is rare.
        let mut after = self.clone();
        after.apply_steps(std::slice::from_ref(&refusal));
        Some(std::iter::once(refusal).chain(after.call_or_park(at)).collect())
    }

    /// Ends a call that repeats an earlier call: its result is the earlier result with a note.
    pub(super) fn refuse_repeat(&mut self, repeated: &RepeatedCall) {
        let earlier = self.messages.iter().rev();
        let mut earlier = earlier.filter(|message| message.tool_call_id.as_ref() == Some(&repeated.earlier));
        let content = earlier
            .next()
            .map(|message| message.text().into_owned())
            .unwrap_or_default();
        let session = self.request.session.clone();
        if let Some(state) = self.call_mut(&repeated.call) {
            let facts = state.facts;
            state.refuse(ToolErrorCode::Denied, &repeat::refusal(&content), &session);
            // The refusal quotes the earlier result.
            state.facts = facts;
        }
    }

    /// Runs the next group of calls, or continues when all calls have ended.
    ///
    /// Order: a reason to end comes first, so that no call begins in a turn that is over; then the
    /// group is formed, since only its size tells whether the budget for tool calls suffices.
    pub(super) fn after_calls(&self) -> Vec<TurnStep> {
        if let Some(reason) = self.end_reason {
            return self.end_early(reason);
        }
        let group = parallel::next_group(&self.calls);
        if group.is_empty() {
            // The round that just ended is not counted yet; `close_calls` counts it when the step is applied.
            return match self.timed_out_rounds + u32::from(self.round_timed_out()) {
                0..ending::MAX_TIMED_OUT_ROUNDS => self.after_round(),
                _ => self.end_unevaluated(ending::tools_timed_out(&self.finished_calls())),
            };
        }
        let budget = &self.policy.budget;
        if let Some(limit) = budget::tool_calls(budget, self.tool_calls, group.len()) {
            return self.end_early(EndReason::Limit(limit));
        }
        vec![TurnStep::CallTools(group)]
    }

    pub(super) fn apply_answer(&mut self, response: &ChatResponse, facts: &[CallFacts], origins: &[Vec<ValueOrigin>]) {
        let is_out_of_band = self.is_asking_out_of_band();
        let tier = response.tier.unwrap_or(self.tier_of(is_out_of_band));
        self.spent[tier as usize] += Spent::on(response);
        if is_out_of_band {
            // A judge's answer costs money and tokens, and is no part of the conversation.
            return;
        }
        self.apply_usage(response.usage);
        self.keep_response(response);
        // An answer that was cut may have cut arguments, which could still be valid JSON with another
        // meaning.
        let may_call =
            response.finish.allows_calls() && matches!(&self.phase, Phase::Asking(purpose) if purpose.has_tools());
        let wanted = if may_call { response.tool_calls.as_slice() } else { &[] };
        let calls = identity::unique(wanted, &self.finished);
        self.calls = calls
            .zip(facts)
            .enumerate()
            .map(|(index, (call, facts))| {
                let origins = origins.get(index).cloned().unwrap_or_default();
                CallState::new(call, *facts).with_origins(origins)
            })
            .collect();
        self.apply_whole_results();
        // An empty message says nothing, and some servers refuse it.
        if response.text.trim().is_empty() && self.calls.is_empty() && response.reasoning.is_none() {
            return;
        }
        let message = response
            .to_message()
            .with_tool_calls(self.calls.iter().map(|state| state.call.clone()).collect());
        self.answer_media.extend(media_of(&message.content));
        self.messages.push(Arc::new(message));
    }

    /// Counts a question whose answer did not come to its end.
    pub(super) fn apply_cut_off(&mut self, usage: Usage, cost: Option<MicroUsd>) {
        let response = ChatResponse::default().with_usage(usage).with_cost(cost);
        self.spent[self.tier_of(self.is_asking_out_of_band()) as usize] += Spent::on(&response);
    }

    fn is_asking_out_of_band(&self) -> bool {
        matches!(&self.phase, Phase::Asking(purpose) if purpose.is_out_of_band())
    }

    pub(super) fn apply_started(&mut self, id: &CallId) {
        if let Some(state) = self.call_mut(id)
            && let CallStatus::Waiting { granted } = state.status
        {
            state.status = CallStatus::Started { granted };
        }
    }

    pub(super) fn apply_returned(&mut self, response: &ToolInvokeResponse) {
        // The first result counts: a remote tool may deliver its answer twice.
        if let Some(state) = self.call_mut(&response.tool_call_id)
            && !state.is_finished()
        {
            state.status = CallStatus::Finished(response.clone());
        }
    }

    /// Counts the cost of the turn of another agent as this turn's own.
    pub(super) fn apply_delegated(&mut self, work: &DelegatedWork) {
        self.model_calls = self.model_calls.saturating_add(work.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(work.tool_calls);
        for (tier, spent) in &work.tiers {
            self.spent[*tier as usize] += *spent;
        }
    }

    pub(super) fn apply_approval(&mut self, decision: &Approval) {
        let session = self.request.session.clone();
        if decision.approved && decision.for_conversation {
            let decided = self.call_mut(&decision.call).filter(|state| state.is_undecided());
            let values = decided.map(|state| EndorsedValue::among(&state.origins, &state.call.name));
            self.endorse(&values.unwrap_or_default());
        }
        // Equal calls of the answer share one question.
        for state in &mut self.calls {
            approval::decide(state, decision, &session);
        }
    }

    /// Moves the results of the last answer's calls into the conversation, in the order of the calls.
    ///
    /// Providers insist on one result for each call directly after the answer, so a call that has not
    /// run by now gets `not_run` as its result and never runs.
    pub(super) fn close_calls(&mut self, not_run: &str) {
        if !self.calls.is_empty() {
            self.timed_out_rounds = if self.round_timed_out() {
                self.timed_out_rounds + 1
            } else {
                0
            };
            self.round_len = self.calls.iter().filter(|state| state.is_finished()).count();
        }
        for mut state in std::mem::take(&mut self.calls) {
            self.count_finished(&state);
            if !state.is_finished() {
                state.refuse(ToolErrorCode::Cancelled, not_run, &self.request.session);
            }
            self.append_result(state);
        }
    }

    /// Counts a call that ended; a call that never ran does not count.
    fn count_finished(&mut self, state: &CallState) {
        let Some(ended) = state.finished() else { return };
        let changes = state.facts.effect == Effect::Mutating && is_work(&ended);
        self.has_delegated |= state.facts.delegates;
        self.activity = self.activity.with_call(changes, ended.is_error);
        if self.policy.task_list && !ended.is_error {
            self.tasks.apply(&state.call);
        }
        self.finished.push(ended);
    }

    fn append_result(&mut self, state: CallState) {
        let CallStatus::Finished(mut response) = state.status else {
            return;
        };
        let note = self
            .repeats
            .observe(&state.call, &comparable(&response.content), response.is_error);
        if let Some(note) = note.filter(|_| self.policy.nudges.on_repeated_calls) {
            response.content.push_str(note);
        }
        if state.is_changed {
            let note = format!(
                "\n[The user approved this call with other arguments: {}]",
                state.call.arguments
            );
            response.content.push_str(&note);
        }
        // Older journals do not state the output of the host's own tools.
        let place = if state.facts.own_output || self.is_own_call(&state.call) {
            Provenance::OWN_TOOL
        } else {
            Provenance::new(["tool:", state.call.name.as_str()].concat(), Trust::Untrusted)
        };
        self.label.join(&place.label());
        let states_origins = response
            .content
            .parts()
            .iter()
            .any(|part| !part.provenance().is_unknown());
        let content = response.content.attributed(place);
        // Origins that a tool states join its own, and do not take its place.
        if states_origins {
            self.label.join(&content.label());
        }
        let message = ChatMessage::tool(response.tool_call_id, content).with_error(response.is_error);
        self.messages.push(Arc::new(message));
    }

    /// Reports whether a call of the last answer exceeded its time limit.
    fn round_timed_out(&self) -> bool {
        self.calls.iter().any(CallState::timed_out)
    }

    /// Reports whether calls of `group` must end first. Once the turn ends, calls that have not
    /// begun never will.
    pub(super) fn is_running(&self, group: &[CallId]) -> bool {
        let waits = |call: &CallState| call.is_started() || (self.end_reason.is_none() && !call.is_finished());
        self.calls
            .iter()
            .any(|call| group.contains(&call.call.id) && waits(call))
    }

    /// Adds values that the user has endorsed for the conversation.
    pub(super) fn endorse(&mut self, values: &[EndorsedValue]) {
        for value in values {
            if self.endorsed.len() < MAX_ENDORSED && !self.endorsed.contains(value) {
                self.endorsed.push(value.clone());
            }
        }
    }

    fn call_mut(&mut self, id: &CallId) -> Option<&mut CallState> {
        self.calls.iter_mut().find(|state| state.call.id == *id)
    }

    pub(super) fn finished_calls(&self) -> Vec<FinishedCall> {
        let current = self.calls.iter().filter_map(CallState::finished);
        self.finished.iter().cloned().chain(current).collect()
    }
}

/// Returns the feature that tells a result from others: its text, or the digest of content with
/// images or files.
fn comparable(content: &Content) -> Cow<'_, str> {
    match content.as_text() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(content.digest().to_string()),
    }
}
