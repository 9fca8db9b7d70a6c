//! Events and their effects: the part of a transition that a replay repeats.

use std::sync::Arc;

use rockbot_core::chat::ChatMessage;
use rockbot_core::content::{Content, Provenance};
use rockbot_core::tool::ToolInvokeResponse;
use rockbot_core::trust::Label;
use rockbot_core::{Timestamp, TurnId};

use super::{EndReason, Phase, Turn};
use crate::turn::call::CallState;
use crate::turn::event::{Revision, TurnEvent};
use crate::turn::policy::approval;

/// Number of messages that most turns add to their context.
const USUAL_MESSAGES: usize = 8;

impl Turn {
    /// Applies an event to the state. Runs in a replay, too, so it must not depend on a policy's
    /// judgement.
    pub(super) fn apply(&mut self, event: &TurnEvent, at: Timestamp) {
        self.count_work(event, at);
        if matches!(event, TurnEvent::ModelAnswered { .. } | TurnEvent::ModelFailed { .. }) {
            (self.has_open_question, self.has_edits) = (false, false);
        }
        match event {
            TurnEvent::Started { .. } => self.apply_start(event),
            TurnEvent::ModelAnswered {
                response,
                facts,
                origins,
            } => self.apply_answer(response, facts, origins),
            TurnEvent::ToolStarted { call } => self.apply_started(call),
            TurnEvent::Delegated(work) => self.apply_delegated(work),
            TurnEvent::BudgetRaised { budget } => self.policy.budget = *budget,
            TurnEvent::ToolReturned(response) => self.apply_returned(response),
            TurnEvent::Activated { own, groups } => self.activation.apply(own.as_ref(), groups),
            TurnEvent::ApprovalDecided(approval) => self.apply_approval(approval),
            TurnEvent::ApprovalExpired => approval::expire(&mut self.calls, &self.request.session),
            TurnEvent::UserSaid { turn, text } => self.apply_joined(turn, text),
            TurnEvent::Escalated { tier } => self.escalated = Some(*tier),
            // A limit does not replace an earlier reason; a cancellation does, since it ends the turn faster.
            TurnEvent::BudgetSpent(limit) => self.end_reason = self.end_reason.or(Some(EndReason::Limit(*limit))),
            TurnEvent::Cancelled(reason) => self.end_reason = Some(EndReason::Cancelled(*reason)),
            TurnEvent::Resumed {
                recovered,
                active_tools,
                delegated,
            } => {
                self.activation.add(active_tools);
                delegated.iter().for_each(|work| self.apply_delegated(work));
                self.apply_resumed(recovered);
            }
            TurnEvent::ToolsTold { label } => self.label.join(label),
            TurnEvent::Halted => self.halted = true,
            // Their verdicts are decisions alone.
            TurnEvent::Validated { .. } | TurnEvent::InputRefused { .. } | TurnEvent::Failed { .. } => {}
            TurnEvent::Compacted { kept } => self.apply_compacted(kept),
            TurnEvent::Consulted { added, decision, .. } => self.apply_consulted(added, decision),
            TurnEvent::HistoryEdited { edits } => self.apply_edits(edits),
            TurnEvent::Gathered {
                message, active_tools, ..
            } => {
                self.activation.add(active_tools);
                self.apply_gathered(message.as_ref());
            }
            TurnEvent::ModelCutOff { usage, cost } => self.apply_cut_off(*usage, *cost),
            TurnEvent::ModelFailed { overflow, .. } => {
                overflow.iter().for_each(|overflow| self.apply_overflow(overflow))
            }
        }
    }

    /// Applies [`TurnEvent::Started`].
    fn apply_start(&mut self, event: &TurnEvent) {
        let TurnEvent::Started {
            revised,
            context,
            has_tools,
            tool_bytes,
            reminder,
            input,
            heard,
            active_tools,
            endorsed,
            ..
        } = event
        else {
            return;
        };
        revised.iter().for_each(|revision| self.revise(revision));
        if let Some(input) = input {
            self.replace_input(input.clone());
        }
        self.messages = Vec::with_capacity(context.len() + USUAL_MESSAGES);
        self.messages.extend(context.iter().cloned().map(Arc::new));
        self.context_len = context.len();
        self.read_at_start(context, heard);
        self.has_tools = *has_tools;
        self.apply_tool_bytes(*tool_bytes);
        self.reminder.clone_from(reminder);
        self.activation.add(active_tools);
        self.endorse(endorsed);
    }

    fn apply_joined(&mut self, turn: &TurnId, text: &Content) {
        self.label.join(&text.clone().attributed(Provenance::USER).label());
        self.unread.push(text.clone());
        self.joined_content.push(text.clone());
        self.joined.push(turn.clone());
    }

    fn apply_resumed(&mut self, recovered: &[ToolInvokeResponse]) {
        // Only a resume without a `Halted` before it is an interruption.
        self.resumes += u32::from(!std::mem::take(&mut self.halted));
        recovered.iter().for_each(|response| self.apply_returned(response));
        self.calls.iter_mut().for_each(CallState::interrupt);
    }

    /// Labels the turn by the texts that its model reads first: the context, the sources that an
    /// older version named beside it, and the sources of the message.
    fn read_at_start(&mut self, context: &[ChatMessage], heard: &[String]) {
        context.iter().for_each(|message| self.label.join(&message.label()));
        heard
            .iter()
            .for_each(|source| self.label.join(&Label::untrusted(source)));
        if let Some(made_of) = &self.request.label {
            self.label.join(made_of);
        }
    }

    /// Changes the request and the settings of a turn that has not begun. [`TurnEvent::Started`]
    /// records the revision.
    pub(crate) fn revise(&mut self, revision: &Revision) {
        self.request = revision.request.clone();
        self.policy = revision.policy;
    }

    /// Counts the time since the last event as work, unless the turn was queued, parked, or without a
    /// process.
    fn count_work(&mut self, event: &TurnEvent, at: Timestamp) {
        let is_parked = matches!(self.phase, Phase::Parked(_));
        let has_waited = self.was_parked || is_parked || self.phase == Phase::Accepted;
        if !has_waited && !matches!(event, TurnEvent::Resumed { .. }) {
            self.worked = self.worked.saturating_add(at.since(self.last_event_at));
        }
        (self.last_event_at, self.was_parked) = (at, is_parked);
    }
}
