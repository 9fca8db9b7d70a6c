//! The rounds of a run: the steps that a pipeline waited for together, and their results.

use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, Role, ToolCall};

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepEnd {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Steps that began together, in order, each with its end.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) calls: &'a [ToolCall],
    pub(super) ends: Vec<StepEnd>,
}

/// Returns the message of a run and its rounds so far.
pub(super) fn read(messages: &[Arc<ChatMessage>]) -> Option<(&ChatMessage, Vec<Round<'_>>)> {
    let at = messages.iter().position(|message| message.role == Role::User)?;
    let message = &messages[at];
    let mut behind = &messages[at + 1..];
    let mut rounds = Vec::new();
    while let Some((first, rest)) = behind.split_first() {
        let end = rest.iter().position(|message| message.role == Role::Assistant);
        let (results, next) = rest.split_at(end.unwrap_or(rest.len()));
        if first.role == Role::Assistant && !first.tool_calls.is_empty() {
            let ends = first.tool_calls.iter().map(|call| end_of(call, results));
            rounds.push(Round {
                calls: &first.tool_calls,
                ends: ends.collect(),
            });
        }
        behind = next;
    }
    Some((message, rounds))
}

fn end_of(call: &ToolCall, results: &[Arc<ChatMessage>]) -> StepEnd {
    let mut results = results.iter();
    match results.find(|result| result.tool_call_id.as_ref() == Some(&call.id)) {
        Some(result) => StepEnd {
            text: result.text().into_owned(),
            is_error: result.is_error,
        },
        None => StepEnd {
            text: "the call has no result".to_owned(),
            is_error: true,
        },
    }
}
