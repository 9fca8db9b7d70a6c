//! Entries of a conversation as messages for the model.

use std::collections::HashMap;

use rockbot_core::CallId;
use rockbot_core::chat::{ChatMessage, ContextReason, Role, ToolCall};
use rockbot_core::content::{Content, Provenance};
use rockbot_core::store::{CallRound, ConversationTurn, EndorsedValue};
use rockbot_core::trust::Trust;
use rockbot_core::turn::TurnRequest;
use rockbot_core::{Digest, ToolName, TurnId};

use crate::text_calling::id_from_text;

/// The conversation before a turn, as the model reads it.
#[derive(Debug, Default)]
pub(in crate::engine) struct ShownHistory {
    pub(in crate::engine) messages: Vec<ChatMessage>,
    /// Groups of tools that are active in the conversation.
    pub(in crate::engine) active_tools: Vec<ToolName>,
    /// Values that the user has endorsed for the conversation.
    pub(in crate::engine) endorsed: Vec<EndorsedValue>,
}

/// Returns the messages of `entries`, with the calls and results of the rounds that `is_shown`
/// returns `true` for.
pub(in crate::engine) fn shown(entries: Vec<ConversationTurn>, is_shown: impl Fn(&CallRound) -> bool) -> ShownHistory {
    let mut history = ShownHistory {
        messages: Vec::with_capacity(entries.len()),
        ..ShownHistory::default()
    };
    // Each turn states all groups that were active at its end.
    if let Some(last) = entries.iter().rfind(|entry| entry.role != Role::User) {
        history.active_tools.clone_from(&last.active_tools);
        history.endorsed.clone_from(&last.endorsed);
    }
    for mut entry in entries {
        let mut rounds = std::mem::take(&mut entry.rounds);
        rounds.retain(&is_shown);
        history.push_rounds(&entry.turn, rounds);
        history.messages.push(message(entry));
    }
    history
}

/// Returns the messages that `request` gives instead of its conversation, with no more trust than
/// its sender has.
pub(in crate::engine) fn given(messages: &[ChatMessage], request: &TurnRequest) -> ShownHistory {
    let digest = Digest::of([request.turn_id().as_str()]).short();
    let mut history = ShownHistory::default();
    let mut ids = HashMap::new();
    let mut count = 0;
    for message in messages {
        let mut message = message.clone().because(ContextReason::History);
        message.content = message.content.trusted_at_most(request.trust);
        for call in &mut message.tool_calls {
            let id = call_id(&digest, count);
            count += 1;
            ids.insert(std::mem::replace(&mut call.id, id.clone()), id);
        }
        if let Some(id) = message.tool_call_id.as_ref().and_then(|id| ids.get(id)) {
            message.tool_call_id = Some(id.clone());
        }
        history.messages.push(message);
    }
    history
}

impl ShownHistory {
    fn push_rounds(&mut self, turn: &TurnId, rounds: Vec<CallRound>) {
        if rounds.is_empty() {
            return;
        }
        let digest = Digest::of([turn.as_str()]).short();
        let mut count = 0;
        for round in rounds {
            let mut results = Vec::with_capacity(round.calls.len());
            let mut calls = Vec::with_capacity(round.calls.len());
            for call in round.calls {
                let id = if round.from_text {
                    text_id(&digest, count)
                } else {
                    call_id(&digest, count)
                };
                count += 1;
                results.push(result(id.clone(), &call.name, call.result));
                calls.push(ToolCall::new(id, call.name, call.arguments));
            }
            if !calls.is_empty() {
                let calls = ChatMessage::calls("", calls).because(ContextReason::History);
                self.messages.push(calls);
            }
            self.messages.append(&mut results);
        }
    }
}

/// Returns the id of a call of an earlier turn.
///
/// Ids of the model's server may repeat from turn to turn, and one server refuses the ids of
/// another: all servers accept nine letters and digits. They follow from the turn, so that
/// requests begin with the same bytes.
fn call_id(turn: &str, count: usize) -> CallId {
    CallId::from(format!("{turn:.7}{count:02x}"))
}

/// Returns the id of a call of an earlier turn that was read from text: so its model reads it as
/// text.
fn text_id(turn: &str, count: usize) -> CallId {
    let digits = turn
        .bytes()
        .take(8)
        .fold(0, |number, digit| number * 16 + usize::from(digit % 16));
    id_from_text(digits + count)
}

/// Returns the result of a call of an earlier turn. Its parts without a stated origin are outside
/// text of the tool.
fn result(call: CallId, tool: &ToolName, mut content: Content) -> ChatMessage {
    let parts = content.parts_mut().iter_mut();
    for part in parts.filter(|part| part.provenance().is_unknown()) {
        *part.provenance_mut() = Provenance::new(format!("tool:{tool}"), Trust::Untrusted);
    }
    ChatMessage::tool(call, content).because(ContextReason::History)
}

fn message(entry: ConversationTurn) -> ChatMessage {
    let (role, author) = match entry.role {
        Role::User => (Role::User, Provenance::USER),
        // A text of the host stands in the role of the answer that it replaced: not every provider
        // accepts system messages after the first.
        Role::System => (Role::Assistant, Provenance::HOST),
        // A result without its call, as another program may have written it, would be refused.
        Role::Assistant | Role::Tool => (Role::Assistant, Provenance::MODEL),
    };
    // An answer without a label, as older versions kept them, is untrusted: its model may have read
    // anything.
    let provenance = match (&entry.label, entry.role) {
        (None, _) => author,
        // It may quote others, such as the error of a model's server.
        (Some(label), Role::System) => Provenance::labelled("host", label),
        (Some(label), Role::User) => Provenance::labelled("user", label),
        (Some(label), Role::Assistant | Role::Tool) => Provenance::labelled("model", label),
    };
    // Marked, so that a text of the host that quotes others still passes for no answer of the model.
    let is_error = entry.role == Role::System;
    let message = ChatMessage::new(role, entry.content, provenance).with_error(is_error);
    message.because(ContextReason::History)
}
