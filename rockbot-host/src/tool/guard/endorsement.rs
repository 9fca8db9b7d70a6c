//! The endorsement of a call by the user's words: where do its values come from?

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::CallId;
use rockbot_core::chat::{ChatMessage, ContextReason, Role, ToolCall};
use rockbot_core::content::{ContentPart, Provenance};
use rockbot_core::store::EndorsedValue;
use rockbot_core::tool::{ToolInvokeRequest, ToolRegistration};
use rockbot_core::trust::Trust;
use rockbot_core::turn::{OutsideStatement, ValueOrigin};
use rockbot_provenance::{Author, Call, Evidence, Source, examine, outside_statements};
use serde_json::Value;

use crate::tool::effect_plan::{self, EffectPlan, PlannedEffect, has_read_others};
use crate::turn::Turn;

use super::indexes::TextIndexes;

/// All that the model of a call has read: the extension of a call's context by which the guard
/// finds the origins of its values.
#[derive(Debug, Clone)]
pub(crate) struct ReadMessages {
    messages: Arc<[Arc<ChatMessage>]>,
    /// The index of the first message that the turn added.
    own_from: usize,
    /// The trust in the sender of the turn's message.
    sender: Trust,
    /// The values that the user has endorsed for the conversation.
    endorsed: Arc<[EndorsedValue]>,
    /// `true` if the model has read more than an untrusted sender's own words.
    has_outside: bool,
    indexes: TextIndexes,
}

impl ReadMessages {
    /// Collects what the model of the turn has read. `indexes` are kept with the turn.
    pub(crate) fn of(turn: &Turn, indexes: &TextIndexes) -> Self {
        let messages = turn.messages();
        Self {
            messages: messages.into(),
            own_from: messages.len() - turn.own_messages().len(),
            sender: sender_of(turn),
            endorsed: turn.endorsed().into(),
            has_outside: has_outside(turn),
            indexes: indexes.clone(),
        }
    }

    /// Returns `true` if the model has read text of others that may want a call. Descriptions of tools
    /// do not count: the operator chose their servers.
    pub(super) fn has_outside(&self) -> bool {
        self.has_outside
    }

    /// Returns the origins of the values that decide about the call; `None` if the user's words
    /// endorse it.
    pub(super) fn doubts(
        &self,
        registration: &ToolRegistration,
        request: &ToolInvokeRequest,
        only_sends: bool,
    ) -> Option<Vec<ValueOrigin>> {
        // Arguments that do not parse fail the call.
        let arguments: Value = serde_json::from_str(&request.arguments).ok()?;
        let sources = self.sources();
        let made = self.made(request);
        let made: Vec<&Value> = made.iter().collect();
        let planned = self.planned(request, made.len());
        let planned = planned
            .iter()
            .map(|(argument, value)| (argument.as_str(), value.as_str()));
        let endorsed = self.endorsed.iter().filter(|value| value.tool == request.tool_name);
        let endorsed = endorsed.map(|value| (value.argument.as_str(), value.value.as_str()));
        let endorsed: Vec<_> = endorsed.chain(planned).collect();
        let call = Call::new(registration.name.as_str(), &arguments, &registration.parameters_schema)
            .with_roles(&registration.hints.argument_roles)
            .with_made(&made)
            .with_endorsed(&endorsed)
            .with_only_sends(only_sends);
        let examination = examine(&call, &Evidence::new(sources));
        (!examination.is_endorsed()).then_some(examination.origins)
    }

    /// Returns the statements of an answer that rest on text of others alone.
    pub(crate) fn outside_statements(&self, answer: &str) -> Vec<OutsideStatement> {
        if self.has_outside {
            outside_statements(answer, &self.sources())
        } else {
            Vec::new()
        }
    }

    /// Returns the values that the turn planned for calls of this tool before it read text of others.
    /// The call as such is among them until as many calls were `made` as were planned.
    fn planned(&self, request: &ToolInvokeRequest, made: usize) -> Vec<(String, String)> {
        let name = request.tool_name.as_str();
        let plans = self.succeeded(effect_plan::NAME, &request.tool_call_id);
        let plans = plans.filter_map(|call| serde_json::from_str::<EffectPlan>(&call.arguments).ok());
        let effects: Vec<PlannedEffect> = plans
            .flat_map(|plan| plan.effects)
            .filter(|effect| effect.tool == name)
            .collect();
        let mut values: Vec<_> = effects.iter().flat_map(PlannedEffect::values).collect();
        if effects.len() > made {
            values.push((String::new(), name.to_owned()));
        }
        values
    }

    /// Returns the texts with their authors. The model's own messages are made of the others, and
    /// say nothing about where a value comes from.
    fn sources(&self) -> Vec<Source<'_>> {
        let mut sources = Vec::new();
        let mut has_read = false;
        for message in self.messages.iter().filter(|message| message.role != Role::Assistant) {
            for (number, part) in message.content.parts().iter().enumerate() {
                let Some(text) = part.as_text() else { continue };
                let Some(author) = self.author(message, part, has_read) else {
                    continue;
                };
                let is_outside = author == Author::Outside;
                has_read |= is_outside;
                let index = is_outside.then(|| self.indexes.of(message, number, text)).flatten();
                sources.push(Source::new(author, self.name(message, part), text).with_index(index));
            }
        }
        sources
    }

    /// Returns the author of a part; `None` for the output of the host's own tools once the model has
    /// read outside text, since it may repeat what the model gave the tool.
    fn author(&self, message: &ChatMessage, part: &ContentPart, has_read: bool) -> Option<Author> {
        let provenance = part.provenance();
        let is_said = message.role == Role::User && message.reason != Some(ContextReason::Recalled);
        match provenance.trust {
            Trust::User if is_said => Some(Author::User),
            trust if is_said && trust == self.sender => Some(Author::User),
            Trust::Untrusted => Some(Author::Outside),
            _ if message.role == Role::Tool && has_read && *provenance == Provenance::OWN_TOOL => None,
            _ => Some(Author::Host),
        }
    }

    /// Returns the name of a text for a question, such as `get_webpage (example.com)`.
    fn name<'a>(&'a self, message: &ChatMessage, part: &'a ContentPart) -> Cow<'a, str> {
        let source = part.provenance().source.as_ref();
        let source = source.strip_prefix("tool:").unwrap_or(source);
        let call = message.tool_call_id.as_ref().and_then(|id| self.call(id));
        match call.and_then(address_of) {
            Some(address) => format!("{source} ({address})").into(),
            None => source.into(),
        }
    }

    fn call(&self, id: &CallId) -> Option<&ToolCall> {
        let mut calls = self.messages.iter().rev().flat_map(|message| &message.tool_calls);
        calls.find(|call| call.id == *id)
    }

    /// Returns the arguments of the calls of the same tool that succeeded in this turn.
    fn made(&self, request: &ToolInvokeRequest) -> Vec<Value> {
        self.succeeded(request.tool_name.as_str(), &request.tool_call_id)
            .filter_map(|call| serde_json::from_str(&call.arguments).ok())
            .collect()
    }

    /// Returns the calls of a tool that succeeded in this turn, except the call `but`.
    fn succeeded<'a>(&'a self, tool: &'a str, but: &'a CallId) -> impl Iterator<Item = &'a ToolCall> {
        let own = self.messages.get(self.own_from..).unwrap_or_default();
        let calls = own.iter().flat_map(|message| &message.tool_calls);
        calls.filter(move |call| {
            let is_result = |message: &&Arc<ChatMessage>| message.tool_call_id.as_ref() == Some(&call.id);
            let has_succeeded = || own.iter().rev().find(is_result).is_some_and(|result| !result.is_error);
            call.name == tool && call.id != *but && has_succeeded()
        })
    }
}

/// Returns the trust in the sender who asks for the calls of the turn. A sender without
/// authentication asks for them, too; the words of a model, which another turn passed on, do not.
fn sender_of(turn: &Turn) -> Trust {
    let request = turn.request();
    let is_passed_on = request.parent.is_some() || request.result_of.is_some();
    if is_passed_on { Trust::User } else { request.trust }
}

/// Returns `true` if the model of the turn has read text of others that may want a call: besides
/// descriptions of tools, and the words of an untrusted sender. What is no longer shown counts, too.
fn has_outside(turn: &Turn) -> bool {
    if sender_of(turn) == Trust::Untrusted {
        let is_read = |message: &Arc<ChatMessage>| message.role == Role::Tool && message.trust() == Trust::Untrusted;
        return turn.messages().iter().any(is_read);
    }
    has_read_others(turn.label())
}

/// Returns the host of the first address among the arguments of a call.
fn address_of(call: &ToolCall) -> Option<String> {
    let start = call.arguments.find("://")? + 3;
    let rest = &call.arguments[start..];
    let end = rest.find(['/', '?', '#', '"', '\\', ' ']).unwrap_or(rest.len());
    (1..=100).contains(&end).then(|| rest[..end].to_owned())
}
