//! The length of the conversation: its estimate, the compaction of a conversation that is too
//! long, and its execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::{ChatErrorKind, ChatMessage, ContextReason, Overflow, Role, ToolCall, Usage};
use rockbot_core::content::Content;
use rockbot_core::store::StorePath;
use rockbot_core::tool::ToolGroup;
use rockbot_core::turn::TurnFailure;
use rockbot_core::{CallId, ToolName};

use super::Turn;
use crate::turn::call::CallStatus;
use crate::turn::compaction::{Compaction, OffloadedMessage};
use crate::turn::policy::compact::{self, Item, ItemKind, NOTICE};
use crate::turn::policy::elide::elide;
use crate::turn::policy::ending;
use crate::turn::policy::token_estimate::{MEDIA_SIZE, TokenEstimate, is_window, percent_of};
use crate::turn::step::{Purpose, TurnCounter, TurnStep};

/// Length of a conversation after a compaction, as a percentage of its limit.
///
/// The conversation grows again, and each compaction loses the provider's prompt cache from the
/// first changed message on. So compactions should be few and large rather than many and small.
const TARGET_PERCENT: u64 = 75;

/// Percentage of the context window that a request may fill; the rest is left for the answer.
const READABLE_PERCENT: u64 = 90;

/// A tool result that is about to be shortened or removed, and whose original is not stored yet.
pub(crate) struct OffloadCandidate {
    pub(crate) call: ToolCall,
    pub(crate) message: Arc<ChatMessage>,
}

/// The estimate of a conversation's length, and the record of its compactions.
#[derive(Debug, Clone, Default)]
pub(super) struct Economy {
    token_estimate: TokenEstimate,
    /// Size of the tool definitions in bytes.
    tool_bytes: usize,
    /// The model's context window in tokens, once known.
    window: Option<u64>,
    /// The compaction that was decided and is not applied yet.
    pending: Option<Compaction>,
    /// `true` after a shorter request was made because the last request was too long.
    retried: bool,
    /// Calls of tools that read long texts; their results are shortened last.
    whole: Vec<CallId>,
    /// The stored originals, for the registry.
    pub(super) offloaded: Vec<(ToolCall, StorePath)>,
    /// Number of removed messages from before the turn.
    pub(super) removed_past: usize,
    /// Number of removed calls of each tool.
    pub(super) removed_calls: BTreeMap<ToolName, usize>,
}

impl Turn {
    pub(super) fn apply_tool_bytes(&mut self, bytes: usize) {
        self.economy.tool_bytes = bytes;
        self.economy.window = self.policy.economy.window;
    }

    /// Applies the usage of an answer: the provider's count of input tokens calibrates the estimate.
    pub(super) fn apply_usage(&mut self, usage: Option<Usage>) {
        self.economy.retried = false;
        if let Some(usage) = usage {
            let bytes = self.request_bytes();
            self.economy.token_estimate.calibrate(bytes, usage.input);
        }
    }

    /// Notes which of the model's calls are of tools that read long texts.
    pub(super) fn apply_whole_results(&mut self) {
        let whole = self.calls.iter().filter(|state| state.facts.keeps_result_whole);
        self.economy.whole.extend(whole.map(|state| state.call.id.clone()));
    }

    /// Applies the model's refusal of a request that was too long.
    pub(super) fn apply_overflow(&mut self, overflow: &Overflow) {
        self.economy.window = overflow.limit.filter(|limit| is_window(*limit)).or(self.economy.window);
        if let Some(asked) = overflow.asked {
            let bytes = self.request_bytes();
            self.economy.token_estimate.calibrate(bytes, asked);
        }
    }

    /// Returns the compaction that was decided and not applied, because the process ended in between.
    pub(super) fn pending_compaction(&self) -> Option<TurnStep> {
        self.economy.pending.clone().map(TurnStep::Compact)
    }

    /// Reports whether the next question to the model repeats the last question, with a shorter
    /// conversation.
    pub(super) fn repeats_question(&self) -> bool {
        self.economy
            .pending
            .as_ref()
            .is_some_and(|compaction| compaction.after_overflow)
    }

    pub(super) fn apply_compaction(&mut self, compaction: &Compaction) {
        self.economy.retried |= compaction.after_overflow;
        self.economy.pending = Some(compaction.clone());
    }

    /// Inserts a compaction before a question to the model when the conversation is too long for it.
    pub(super) fn economize(&self, mut steps: Vec<TurnStep>) -> Vec<TurnStep> {
        let asks = |step: &TurnStep| matches!(step, TurnStep::AskModel(purpose) if !purpose.is_out_of_band());
        if let Some(at) = steps.iter().position(asks)
            && !steps.iter().any(|step| matches!(step, TurnStep::Compact(_)))
            && let Some(compaction) = self.compaction()
        {
            steps.splice(at..at, compact_steps(compaction));
        }
        steps
    }

    /// Asks the same question with a shorter conversation after the model refused it as too long, or
    /// ends the turn with the reason when there is nothing to remove. `None` when the failure has
    /// another cause.
    pub(super) fn shorter(&self, purpose: &Purpose, kind: ChatErrorKind, message: &str) -> Option<Vec<TurnStep>> {
        if !kind.smaller_context_helps() || purpose.is_out_of_band() {
            return None;
        }
        // One retry only: a provider that refuses the shorter request, too, reports a limit that cannot
        // be met.
        match self.compaction_after_overflow().filter(|_| !self.economy.retried) {
            Some(compaction) => Some(
                compact_steps(compaction)
                    .chain([TurnStep::AskModel(purpose.clone())])
                    .collect(),
            ),
            // These turns end with their work so far, which `Turn::failed` decides.
            None if matches!(purpose, Purpose::Conclude(_)) || self.evaluation.has_first_answer() => None,
            None => Some(vec![self.too_long(kind, message)]),
        }
    }

    fn compaction(&self) -> Option<Compaction> {
        let economy = &self.policy.economy;
        let window = self.economy.window.map(|tokens| percent_of(tokens, READABLE_PERCENT));
        let limit = window.into_iter().chain(economy.watermark).min();
        if limit.is_none() && economy.max_result_len.is_none() {
            return None;
        }
        let items = self.items();
        let bytes = self.bytes_of(&items);
        let estimate = self.economy.token_estimate;
        let limit = limit.filter(|limit| estimate.tokens(bytes) > *limit);
        let excess = limit.map_or(0, |limit| {
            bytes.saturating_sub(estimate.bytes(percent_of(limit, TARGET_PERCENT)))
        });
        compact::plan(&items, excess, economy.max_result_len)
    }

    /// Plans the compaction of a request that was refused. The target lies below the limit that the
    /// provider reported. If the provider reported no limit, or a limit that the estimate
    /// contradicts, the target is half of the request's length.
    fn compaction_after_overflow(&self) -> Option<Compaction> {
        let items = self.items();
        let bytes = self.bytes_of(&items);
        let estimate = self.economy.token_estimate;
        let limit = self
            .economy
            .window
            .map(|limit| estimate.bytes(percent_of(limit, TARGET_PERCENT)));
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
            let messages = self.messages.iter().filter(move |message| message.role == role);
            messages.map(|message| size(message)).sum()
        };
        let text = format!(
            "The model could not be asked: {message}; and nothing more can be left out of the conversation: about {} \
             tokens are instructions, {} definitions of tools, {} what was asked, and {} results of tools.",
            tokens(of(Role::System)),
            tokens(self.economy.tool_bytes),
            tokens(of(Role::User)),
            tokens(of(Role::Tool)),
        );
        ending::failed(TurnFailure::Model(kind), &text, &self.finished)
    }

    /// Returns the conversation as it will be at the next question: with the results of the model's
    /// last calls, which move into it only when the step is applied.
    fn items(&self) -> Vec<Item<'_>> {
        let messages = self.messages.iter().enumerate().map(|(index, message)| Item {
            kind: self.kind(index, message),
            bytes: size(message),
        });
        let results = self.calls.iter().map(|state| Item {
            kind: self.result_kind(&state.call.id),
            bytes: match &state.status {
                CallStatus::Finished(response) => content_size(&response.content),
                _ => 0,
            },
        });
        messages.chain(results).collect()
    }

    fn kind<'a>(&'a self, index: usize, message: &'a ChatMessage) -> ItemKind<'a> {
        let is_past = index < self.context_len && message.why() == ContextReason::History;
        match (message.role, &message.tool_call_id) {
            (Role::Assistant | Role::Tool, _) if is_past => ItemKind::Past { by_user: false },
            (Role::User, _) if is_past => ItemKind::Past { by_user: true },
            (Role::Tool, Some(call)) => self.result_kind(call),
            (Role::Assistant, _) if !message.tool_calls.is_empty() => ItemKind::Step,
            _ => ItemKind::Fixed,
        }
    }

    fn result_kind<'a>(&self, call: &'a CallId) -> ItemKind<'a> {
        let whole = self.economy.whole.contains(call);
        ItemKind::Result { call, whole }
    }

    fn bytes_of(&self, items: &[Item<'_>]) -> usize {
        self.economy.tool_bytes + items.iter().map(|item| item.bytes).sum::<usize>()
    }

    /// Estimates the tokens of the question for `purpose`, and of `received` bytes of its answer.
    pub(crate) fn estimated_usage(&self, purpose: &Purpose, received: u64) -> Usage {
        let asked = match self.out_of_band(purpose) {
            Some(question) => question.messages.iter().map(size).sum(),
            None => self.request_bytes(),
        };
        let received = usize::try_from(received).unwrap_or(usize::MAX);
        let estimate = &self.economy.token_estimate;
        Usage::new(estimate.tokens(asked), estimate.tokens(received))
    }

    fn request_bytes(&self) -> usize {
        self.economy.tool_bytes + self.messages.iter().map(|message| size(message)).sum::<usize>()
    }

    /// Returns the results that the pending compaction shortens or removes, and whose originals are
    /// not stored yet.
    ///
    /// A removed result no longer than its notice is not worth storing. Results of reading tools are
    /// not stored either: they are copies of texts that the model can read again.
    pub(crate) fn offload_candidates(&self) -> Vec<OffloadCandidate> {
        let Some(compaction) = &self.economy.pending else {
            return Vec::new();
        };
        let is_offloaded = |call: &CallId| self.economy.offloaded.iter().any(|(known, _)| known.id == *call);
        let is_elided = |call: &CallId| compaction.elided.iter().any(|elision| elision.call == *call);
        let removed_end = self.end_of_steps(compaction.steps);
        let mut candidates = Vec::new();
        let mut calls: &[ToolCall] = &[];
        for (index, message) in self.messages.iter().enumerate() {
            if !message.tool_calls.is_empty() {
                calls = &message.tool_calls;
            }
            let Some(id) = &message.tool_call_id else { continue };
            let is_affected =
                is_elided(id) || ((self.context_len..removed_end).contains(&index) && size(message) > NOTICE);
            if is_affected
                && !is_offloaded(id)
                && !self.economy.whole.contains(id)
                && let Some(call) = calls.iter().find(|call| call.id == *id)
            {
                candidates.push(OffloadCandidate {
                    call: call.clone(),
                    message: message.clone(),
                });
            }
        }
        candidates
    }

    /// Returns the index of the first message after the turn's first `count` steps.
    fn end_of_steps(&self, count: usize) -> usize {
        let is_step = |(_, message): &(usize, &Arc<ChatMessage>)| !message.tool_calls.is_empty();
        let mut steps = self.messages.iter().enumerate().skip(self.context_len).filter(is_step);
        match count {
            0 => 0,
            _ => steps.nth(count).map_or(self.messages.len(), |(index, _)| index),
        }
    }

    /// Removes the parts that the pending compaction names; `kept` has the places of the originals.
    ///
    /// Only originals that are really stored come into the registry, so the model never reads a key
    /// that leads nowhere.
    pub(super) fn apply_compacted(&mut self, kept: &[OffloadedMessage]) {
        // Before the messages change: the candidates are found among them.
        let candidates = self.offload_candidates();
        let Some(compaction) = self.economy.pending.take() else {
            return;
        };
        if !kept.is_empty() {
            self.activation.add(&[ToolGroup::STORED_TEXTS.into()]);
        }
        for OffloadCandidate { call, .. } in candidates {
            if let Some(original) = kept.iter().find(|original| original.call == call.id) {
                self.economy.offloaded.push((call, original.key.clone()));
            }
        }
        // Steps first: their range is counted from `context_len`, which removing past messages lowers.
        self.remove_steps(&compaction);
        self.remove_past(&compaction);
        for elision in &compaction.elided {
            self.elide(&elision.call, elision.keep);
        }
    }

    fn remove_steps(&mut self, compaction: &Compaction) {
        let begin = self.context_len;
        let end = self.end_of_steps(compaction.steps);
        let mut index = 0;
        let removed_calls = &mut self.economy.removed_calls;
        self.messages.retain(|message| {
            let is_of_step = message.role == Role::Tool || !message.tool_calls.is_empty();
            let is_removed = (begin..end).contains(&index) && is_of_step;
            index += 1;
            if is_removed {
                message
                    .tool_calls
                    .iter()
                    .for_each(|call| *removed_calls.entry(call.name.clone()).or_default() += 1);
            }
            !is_removed
        });
    }

    fn remove_past(&mut self, compaction: &Compaction) {
        let past: Vec<_> = (0..self.context_len)
            .filter(|index| matches!(self.kind(*index, &self.messages[*index]), ItemKind::Past { .. }))
            .take(compaction.past)
            .collect();
        // From the end, so that the earlier indices stay valid.
        for index in past.iter().rev() {
            self.messages.remove(*index);
        }
        self.context_len -= past.len();
        self.economy.removed_past += past.len();
    }

    fn elide(&mut self, call: &CallId, keep: usize) {
        let head_percent = self.policy.economy.head_percent;
        let mut results = self.messages.iter_mut();
        if let Some(message) = results.find(|message| message.tool_call_id.as_ref() == Some(call)) {
            let content = elide(&message.content.words(), keep, head_percent, call);
            let elided = ChatMessage::tool(call.clone(), content).with_error(message.is_error);
            *message = Arc::new(elided);
        }
    }
}

fn compact_steps(compaction: Compaction) -> impl Iterator<Item = TurnStep> {
    [
        TurnStep::Count(TurnCounter::ContextCompacted),
        TurnStep::Compact(compaction),
    ]
    .into_iter()
}

/// Returns the approximate size of a message in a request, in bytes.
fn size(message: &ChatMessage) -> usize {
    let calls = message.tool_calls.iter();
    content_size(&message.content)
        + calls
            .map(|call| call.name.as_str().len() + call.arguments.len())
            .sum::<usize>()
}

/// Returns the approximate size of content in a request, in bytes of text that cost as many tokens.
fn content_size(content: &Content) -> usize {
    content.text_len() + content.media().count() * MEDIA_SIZE
}
