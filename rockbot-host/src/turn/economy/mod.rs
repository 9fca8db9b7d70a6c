//! Keeping the conversation within what the model takes: what it is measured by, what is left out, and where the
//! model finds that again.

mod registry;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::{ChatErrorKind, ChatMessage, ContextReason, Overflow, Role, ToolCall, Usage};
use rockbot_core::store::StorePath;
use rockbot_core::turn::{TurnFailure, TurnStatus};
use rockbot_core::{CallId, ToolName};
use serde::{Deserialize, Serialize};

use super::call::CallStatus;
use super::event::{Purpose, TurnCounter, TurnStep};
use super::machine::Turn;
use super::policy::compact::{self, Compaction, Item, NOTICE, Part};
use super::policy::elide::elide;
use super::policy::token_estimate::Gauge;

pub use settings::ContextEconomy;

/// How much of its limit a conversation has once something was left out, in percent: it grows again, and each time the
/// provider's cache of its beginning is lost.
const AIM: u64 = 75;

/// How much of its window a model can read, in percent: its answer needs room, too.
const READABLE: u64 = 90;

/// Where the original of something is that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadedMessage {
    /// The call that returned it.
    pub call: CallId,
    /// Its key in working memory.
    pub key: StorePath,
}

/// A result that is about to lose something.
pub(crate) struct OffloadCandidate {
    pub(crate) call: ToolCall,
    pub(crate) message: Arc<ChatMessage>,
}

/// How long a turn's conversation is, and what of it was left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Economy {
    token_estimate: Gauge,
    /// How many bytes the definitions of the tools have.
    tools: usize,
    /// How many tokens the model's window has, if it said so.
    window: Option<u64>,
    /// What is about to be left out.
    pending: Option<Compaction>,
    /// Whether a shorter request was made because the last one was too long.
    retried: bool,
    /// Calls of tools that are there to read long texts with.
    whole: Vec<CallId>,
    kept: Vec<(ToolCall, StorePath)>,
    past: usize,
    steps: BTreeMap<ToolName, usize>,
}

impl Turn {
    pub(super) fn note_tools(&mut self, bytes: usize) {
        self.economy.tools = bytes;
        self.economy.window = self.policy.economy.window;
    }

    /// Takes in that the model answered, and what that cost.
    pub(super) fn note_answer(&mut self, usage: Option<Usage>) {
        self.economy.retried = false;
        if let Some(usage) = usage {
            let bytes = self.request_bytes();
            self.economy.token_estimate.counted(bytes, usage.input);
        }
    }

    /// Takes in which of the model's calls are of tools that read long texts.
    pub(super) fn note_whole(&mut self) {
        let whole = self.calls.iter().filter(|state| state.facts.keeps_result_whole);
        self.economy.whole.extend(whole.map(|state| state.call.id.clone()));
    }

    /// Takes in that the model refused a request as too long.
    pub(super) fn note_overflow(&mut self, overflow: &Overflow) {
        self.economy.window = overflow.limit.or(self.economy.window);
        if let Some(asked) = overflow.asked {
            let bytes = self.request_bytes();
            self.economy.token_estimate.counted(bytes, asked);
        }
    }

    /// The compaction that was decided and not made, if the process ended in between.
    pub(super) fn pending_compaction(&self) -> Option<TurnStep> {
        self.economy.pending.clone().map(TurnStep::Compact)
    }

    /// Whether the model is about to be asked the same thing again, with less.
    pub(super) fn asks_again(&self) -> bool {
        self.economy
            .pending
            .as_ref()
            .is_some_and(|compaction| compaction.after_overflow)
    }

    pub(super) fn note_compaction(&mut self, compaction: &Compaction) {
        self.economy.retried |= compaction.after_overflow;
        self.economy.pending = Some(compaction.clone());
    }

    /// Puts a compaction before a question to the model where the conversation has become too long for it.
    pub(super) fn economize(&self, mut steps: Vec<TurnStep>) -> Vec<TurnStep> {
        let asks = |step: &TurnStep| matches!(step, TurnStep::AskModel(purpose) if !purpose.is_out_of_band());
        if let Some(at) = steps.iter().position(asks)
            && !steps.iter().any(|step| matches!(step, TurnStep::Compact(_)))
            && let Some(compaction) = self.compaction()
        {
            steps.splice(at..at, compacted(compaction));
        }
        steps
    }

    /// The question once more, with less, after the model refused it as too long; an end that says why not, if there is
    /// nothing to leave out. `None` when that is not what went wrong.
    pub(super) fn shorter(&self, purpose: &Purpose, kind: ChatErrorKind, message: &str) -> Option<Vec<TurnStep>> {
        if !kind.smaller_context_helps() || purpose.is_out_of_band() {
            return None;
        }
        match self.after_overflow().filter(|_| !self.economy.retried) {
            Some(compaction) => Some(
                compacted(compaction)
                    .chain([TurnStep::AskModel(purpose.clone())])
                    .collect(),
            ),
            // A last answer has an end of its own.
            None if matches!(purpose, Purpose::Conclude(_)) || self.self_evaluation.original.is_some() => None,
            None => Some(vec![self.too_long(kind, message)]),
        }
    }

    fn compaction(&self) -> Option<Compaction> {
        let economy = &self.policy.economy;
        let window = self.economy.window.map(|tokens| tokens * READABLE / 100);
        let limit = window.into_iter().chain(economy.watermark).min();
        if limit.is_none() && economy.max_result_len.is_none() {
            return None;
        }
        let items = self.items();
        let bytes = self.bytes_of(&items);
        let limit = limit.filter(|limit| self.economy.token_estimate.tokens(bytes) > *limit);
        let excess = limit.map_or(0, |limit| {
            bytes.saturating_sub(self.economy.token_estimate.bytes(limit * AIM / 100))
        });
        compact::plan(&items, excess, economy.max_result_len)
    }

    /// What to leave out of a request that was refused: half of it, where the provider does not say how long it may be.
    fn after_overflow(&self) -> Option<Compaction> {
        let items = self.items();
        let bytes = self.bytes_of(&items);
        let limit = self
            .economy
            .window
            .map(|limit| self.economy.token_estimate.bytes(limit * AIM / 100));
        let target = limit.filter(|limit| *limit < bytes).unwrap_or(bytes / 2);
        let compaction = compact::plan(&items, bytes - target, self.policy.economy.max_result_len)?;
        Some(Compaction {
            after_overflow: true,
            ..compaction
        })
    }

    fn too_long(&self, kind: ChatErrorKind, message: &str) -> TurnStep {
        let tokens = |bytes: usize| self.economy.token_estimate.tokens(bytes);
        let of = |role: Role| {
            self.messages
                .iter()
                .filter(move |said| said.role == role)
                .map(|said| size(said))
                .sum()
        };
        let text = format!(
            "The model could not be asked: {message}; and nothing more can be left out of the conversation: about {} \
             tokens are instructions, {} definitions of tools, {} what was asked, and {} results of tools.",
            tokens(of(Role::System)),
            tokens(self.economy.tools),
            tokens(of(Role::User)),
            tokens(of(Role::Tool)),
        );
        TurnStep::Finish {
            status: TurnStatus::Failed(TurnFailure::Model(kind)),
            text: Some(text),
        }
    }

    /// The conversation as it will be when the model is asked next: with the results of its last calls.
    fn items(&self) -> Vec<Item<'_>> {
        let spoken = self.messages.iter().enumerate().map(|(index, message)| Item {
            part: self.part(index, message),
            bytes: size(message),
        });
        let returned = self.calls.iter().map(|state| Item {
            part: self.result(&state.call.id),
            bytes: match &state.status {
                CallStatus::Finished(response) => response.content.len(),
                _ => 0,
            },
        });
        spoken.chain(returned).collect()
    }

    fn part<'a>(&'a self, index: usize, message: &'a ChatMessage) -> Part<'a> {
        let is_past = index < self.begun_with && message.why() == ContextReason::History;
        match (message.role, &message.tool_call_id) {
            (Role::Tool, Some(call)) => self.result(call),
            (Role::Assistant, _) if is_past => Part::Past { by_user: false },
            (Role::User, _) if is_past => Part::Past { by_user: true },
            (Role::Assistant, _) if !message.tool_calls.is_empty() => Part::Step,
            _ => Part::Fixed,
        }
    }

    fn result<'a>(&self, call: &'a CallId) -> Part<'a> {
        let whole = self.economy.whole.contains(call);
        Part::Result { call, whole }
    }

    fn bytes_of(&self, items: &[Item<'_>]) -> usize {
        self.economy.tools + items.iter().map(|item| item.bytes).sum::<usize>()
    }

    fn request_bytes(&self) -> usize {
        self.economy.tools + self.messages.iter().map(|message| size(message)).sum::<usize>()
    }

    /// The results that are about to lose something, and are kept nowhere yet.
    pub(crate) fn losing(&self) -> Vec<OffloadCandidate> {
        let Some(compaction) = &self.economy.pending else {
            return Vec::new();
        };
        let is_kept = |call: &CallId| self.economy.kept.iter().any(|(kept, _)| kept.id == *call);
        let is_elided = |call: &CallId| compaction.elided.iter().any(|elision| elision.call == *call);
        let leaving = self.steps(compaction.steps);
        let mut losing = Vec::new();
        let mut calls: &[ToolCall] = &[];
        for (index, message) in self.messages.iter().enumerate() {
            if !message.tool_calls.is_empty() {
                calls = &message.tool_calls;
            }
            let Some(id) = &message.tool_call_id else { continue };
            let loses = is_elided(id) || (index < leaving && size(message) > NOTICE);
            if loses
                && !is_kept(id)
                && !self.economy.whole.contains(id)
                && let Some(call) = calls.iter().find(|call| call.id == *id)
            {
                losing.push(OffloadCandidate {
                    call: call.clone(),
                    message: message.clone(),
                });
            }
        }
        losing
    }

    /// Where the first `count` steps of the turn end.
    fn steps(&self, count: usize) -> usize {
        let is_step = |(_, message): &(usize, &Arc<ChatMessage>)| !message.tool_calls.is_empty();
        let mut steps = self.messages.iter().enumerate().skip(self.begun_with).filter(is_step);
        match count {
            0 => 0,
            _ => steps.nth(count).map_or(self.messages.len(), |(index, _)| index),
        }
    }

    /// Leaves out what is to be left out; the originals are where `kept` says.
    pub(super) fn take_compacted(&mut self, kept: &[OffloadedMessage]) {
        let losing = self.losing();
        let Some(compaction) = self.economy.pending.take() else {
            return;
        };
        for OffloadCandidate { call, .. } in losing {
            if let Some(original) = kept.iter().find(|original| original.call == call.id) {
                self.economy.kept.push((call, original.key.clone()));
            }
        }
        self.forget_steps(&compaction);
        self.forget_past(&compaction);
        for elision in &compaction.elided {
            self.elide(&elision.call, elision.keep);
        }
    }

    fn forget_steps(&mut self, compaction: &Compaction) {
        let (begin, end) = (self.begun_with, self.steps(compaction.steps));
        let mut index = 0;
        let names = &mut self.economy.steps;
        self.messages.retain(|message| {
            let gone = (begin..end).contains(&index) && (message.role == Role::Tool || !message.tool_calls.is_empty());
            index += 1;
            if gone {
                message
                    .tool_calls
                    .iter()
                    .for_each(|call| *names.entry(call.name.clone()).or_default() += 1);
            }
            !gone
        });
    }

    fn forget_past(&mut self, compaction: &Compaction) {
        let past: Vec<_> = (0..self.begun_with)
            .filter(|index| matches!(self.part(*index, &self.messages[*index]), Part::Past { .. }))
            .take(compaction.past)
            .collect();
        for index in past.iter().rev() {
            self.messages.remove(*index);
        }
        self.begun_with -= past.len();
        self.economy.past += past.len();
    }

    fn elide(&mut self, call: &CallId, keep: usize) {
        let head_percent = self.policy.economy.head_percent;
        let mut results = self.messages.iter_mut();
        if let Some(message) = results.find(|message| message.tool_call_id.as_ref() == Some(call)) {
            let content = elide(&message.text(), keep, head_percent, call);
            *message = Arc::new(ChatMessage::tool(call.clone(), content));
        }
    }
}

fn compacted(compaction: Compaction) -> impl Iterator<Item = TurnStep> {
    [
        TurnStep::Count(TurnCounter::ContextCompacted),
        TurnStep::Compact(compaction),
    ]
    .into_iter()
}

/// How many bytes of a request a message is, roughly.
fn size(message: &ChatMessage) -> usize {
    let text: usize = message.content.iter().map(|part| part.text.len()).sum();
    let calls = message.tool_calls.iter();
    text + calls
        .map(|call| call.name.as_str().len() + call.arguments.len())
        .sum::<usize>()
}
