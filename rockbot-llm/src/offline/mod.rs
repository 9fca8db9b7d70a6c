//! The model that needs no network, no key and no weights, because it is none: it matches words
//! to tools.
//!
//! A service answers by the offline model only if it is named (`LLM.Provider = "offline"`): a
//! missing key would otherwise go unnoticed. The service is the program that serves users
//! (`full_agent`); a program that a person tries out starts without a setting.

mod arguments;
mod choose;
mod words;

use std::fmt::Write;

use async_trait::async_trait;
use rockbot_core::CallId;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, MicroUsd,
    ModelInfo, ModelTier, Role, ToolCall,
};

use self::choose::{Choice, choose};

/// A stand-in for a model, for first runs without a key. It is not an LLM, and says so in each
/// answer.
///
/// It calls a tool only if the user's words name it and hold all of its required arguments; it
/// reports the result word for word. The same conversation always gets the same answer. It knows
/// no tool by name: names, descriptions and schemas are all it goes by.
///
/// An argument is taken from the text when it is a number, a quoted text, one of the values that
/// the schema lists, an arithmetic expression, a URL, a file name, or the words behind the tool's
/// verb (`weather in Paris`). An optional argument is filled by the same rules where the text has
/// words for it: a search finds the named things, and does not list all.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

const INTRODUCTION: &str = "I am rockbot's offline model, not an LLM: I only match words to tools.";

const WAY_OUT: &str = "For a real model set OPENAI_API_KEY (and OPENAI_MODEL) or ANTHROPIC_API_KEY, or \
                       ROCKBOT_LLM__BALANCED__ENDPOINT and ROCKBOT_LLM__BALANCED__MODELID for a local server.";

/// Maximum number of tools that an answer names.
const MAX_NAMED_TOOLS: usize = 4;

impl OfflineModel {
    /// Creates the offline model.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl ChatClient for OfflineModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        if call.cx.cancellation().is_cancelled() {
            let message = "the call of the offline model was cancelled";
            return Err(ChatError::new(ChatErrorKind::Cancelled, message));
        }
        if call.request.output.is_some() {
            let message = format!("the offline model is not an LLM and cannot answer in a given shape; {WAY_OUT}");
            return Err(ChatError::new(ChatErrorKind::NotConfigured, message));
        }
        let answer = answer(&call.request).with_model("offline").with_cost(MicroUsd(0));
        if let Some(sink) = &call.deltas {
            for word in answer.text.split_inclusive(' ') {
                sink.send(ChatDelta::Text(word));
            }
            for ToolCall { id, name, .. } in &answer.tool_calls {
                sink.send(ChatDelta::ToolCall { call: id, tool: name });
            }
        }
        Ok(answer)
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn answer(request: &ChatRequest) -> ChatResponse {
    let results = results(request);
    if !results.is_empty() {
        return ChatResponse::text(report(request, &results));
    }
    let question = request.messages.iter().rev().find(|message| message.role == Role::User);
    let has_media = question.is_some_and(|message| message.content.has_media());
    let question = question.map(|message| message.text().into_owned()).unwrap_or_default();
    let settings = request.settings_over(None);
    let choice = settings.tool_choice.clone().unwrap_or_default();
    match choose(&question, &request.tools, &choice) {
        Choice::Call { tool, arguments } => {
            ChatResponse::calls(vec![ToolCall::new(next_id(request), tool.clone(), arguments)])
        }
        Choice::Missing { tool, argument } => ChatResponse::text(format!(
            "{INTRODUCTION} `{tool}` seems to be meant, but I cannot find its `{argument}` in your message: write it \
             in quotes. {WAY_OUT}"
        )),
        Choice::Nothing => {
            let unseen = if has_media {
                " I cannot see images and files."
            } else {
                ""
            };
            ChatResponse::text(format!("{INTRODUCTION}{unseen} {}{WAY_OUT}", abilities(request)))
        }
    }
}

/// Returns the tool results at the conversation's end, which have no answer yet.
fn results(request: &ChatRequest) -> Vec<&ChatMessage> {
    let latest = request
        .messages
        .iter()
        .rev()
        .filter(|message| message.role != Role::System);
    let mut results: Vec<_> = latest
        .take_while(|message| message.role == Role::Tool)
        .map(|message| &**message)
        .collect();
    results.reverse();
    results
}

fn report(request: &ChatRequest, results: &[&ChatMessage]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for result in results {
        let mut calls = request.messages.iter().flat_map(|message| &message.tool_calls).rev();
        let call = calls.find(|call| Some(&call.id) == result.tool_call_id.as_ref());
        let name = call.map_or("the tool", |call| call.name.as_str());
        // Writing to a string cannot fail.
        let _ = write!(text, "\n`{name}` says:\n{}", result.content.words());
    }
    text
}

fn abilities(request: &ChatRequest) -> String {
    let entries = request.tools.entries();
    if entries.is_empty() {
        return "There are no tools for me to call, so I cannot help with that. ".into();
    }
    let names = entries.iter().map(|entry| format!("`{}`", entry.registration().name));
    let named: Vec<_> = names.take(MAX_NAMED_TOOLS).collect();
    let more = match entries.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Nothing in your message names one together with its arguments: {}{more}.\n",
        named.join(", ")
    )
}

/// Returns an id that no call of the conversation has.
fn next_id(request: &ChatRequest) -> CallId {
    let calls = || request.messages.iter().flat_map(|message| &message.tool_calls);
    let mut number = calls().count();
    loop {
        number += 1;
        let id = CallId::from(format!("offline_{number}"));
        if calls().all(|call| call.id != id) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests;
