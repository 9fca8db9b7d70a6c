//! A chat client that gives a model without native tool calls the interface of a model that has
//! them.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatMessage, ChatRequest, ChatResponse, Content, ContextReason,
    FinishReason, ModelInfo, ModelTier, Provenance, Role, ToolCall,
};
use rockbot_core::context::Trust;
use rockbot_core::tool::ToolView;
use rockbot_core::{CallId, ToolName};
use rockbot_text_calls::{OfferedTool, TextAnswer, TextCallParser, call_text, instructions, result_text};

use super::deltas::FilteredDeltas;
use super::ids::id_from_text;

/// A client for models that have no native tool calls.
///
/// Tools become a section of the system prompt that teaches how to call them. Calls and results
/// in the conversation become text. Calls in the text of an answer become native calls with the
/// ids `text00001`, `text00002`, …. When an answer has malformed calls and no other, the model is
/// asked once more with a correction; usage and cost of both answers are added up. Text that may
/// turn out to be a call is not streamed.
///
/// An answer that was cut by a length limit or a content filter is passed on as text: its calls
/// may be incomplete.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::chat::ChatError> {
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::text_calling::TextCallingClient;
///
/// let model = TextCallingClient::new(ScriptedModel::new().says("Hello."));
/// let request = ChatRequest::new([ChatMessage::user("Hi!")]);
/// let answer = model.chat(ChatCall::new(request, CallContext::new("s"))).await?;
/// assert_eq!(answer.text, "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TextCallingClient<C> {
    client: C,
}

impl<C: ChatClient> TextCallingClient<C> {
    /// Creates a client that asks the model through `client`.
    pub fn new(client: C) -> Self {
        Self { client }
    }

    /// Returns the client that is asked.
    pub(super) fn native(&self) -> &C {
        &self.client
    }

    /// Asks once, and parses the answer.
    async fn ask(
        &self,
        request: &ChatRequest,
        parser: &TextCallParser,
        call: &ChatCall,
    ) -> Result<(ChatResponse, TextAnswer), ChatError> {
        let filtered = call.deltas.as_ref().map(|deltas| FilteredDeltas::new(deltas, parser));
        let inner =
            ChatCall::new(request.clone(), call.cx.clone()).with_deltas(filtered.as_ref().map(FilteredDeltas::sink));
        let response = self.client.chat(inner).await?;
        // Where a text was cut between two calls, or within the words before one, it does not show.
        let answer = if response.finish.allows_calls() {
            parser.parse(&response.text)
        } else {
            TextAnswer::of_text(response.text.clone())
        };
        if let Some(filtered) = filtered {
            filtered.finish(&answer);
        }
        Ok((response, answer))
    }
}

#[async_trait]
impl<C: ChatClient> ChatClient for TextCallingClient<C> {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let parser = TextCallParser::for_tools(offered(&call.request.tools));
        let mut request = in_text(&call.request);
        let (mut response, mut answer) = self.ask(&request, &parser, &call).await?;
        if let Some(correction) = answer.correction.take().filter(|_| answer.calls.is_empty()) {
            // The first answer may have been streamed in part: the second answer replaces it.
            if let Some(deltas) = &call.deltas {
                deltas.send(ChatDelta::Reset);
            }
            let first = ChatMessage::assistant(&*response.text);
            let correction = ChatMessage::new(Role::User, correction, Provenance::HOST);
            request.messages.extend([first, correction].map(Arc::new));
            let usage = response.usage;
            let cost = response.cost;
            (response, answer) = self.ask(&request, &parser, &call).await?;
            response.usage = match (usage, response.usage) {
                (Some(mut first), Some(second)) => {
                    first += second;
                    Some(first)
                }
                (first, second) => first.or(second),
            };
            // The price of both is known only when each price is.
            response.cost = cost
                .zip(response.cost)
                .map(|costs| [costs.0, costs.1].into_iter().sum());
        }
        Ok(native(response, answer))
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.client.describe(tier)
    }
}

/// Returns the response with the calls of the text as native calls.
pub(super) fn native(response: ChatResponse, answer: TextAnswer) -> ChatResponse {
    let calls = answer.calls.into_iter().zip(1..);
    let tool_calls: Vec<_> = calls
        .map(|(call, number)| ToolCall::new(id_from_text(number), ToolName::from(&*call.name), call.arguments))
        .collect();
    let finish = if tool_calls.is_empty() {
        response.finish
    } else {
        FinishReason::ToolCalls
    };
    response
        .with_calls_from_text(!tool_calls.is_empty())
        .with_text(answer.text)
        .with_finish(finish)
        .with_tool_calls(tool_calls)
}

/// Returns the request without native tools, calls and results.
fn in_text(request: &ChatRequest) -> ChatRequest {
    let mut messages = messages_in_text(&request.messages);
    if !request.tools.is_empty() {
        // Behind all system messages: they stay the same when tools come and go, and servers get them as
        // one.
        let at = messages
            .iter()
            .take_while(|message| message.role == Role::System)
            .count();
        messages.insert(at, Arc::new(ChatMessage::system(instructions(offered(&request.tools)))));
    }
    let mut request = request.clone();
    (request.messages, request.tools) = (messages, ToolView::default());
    request
}

/// Returns the messages with calls and results as text.
fn messages_in_text(native: &[Arc<ChatMessage>]) -> Vec<Arc<ChatMessage>> {
    let shown = native
        .iter()
        .enumerate()
        .map(|(at, message)| match &message.tool_call_id {
            Some(id) => {
                let name = name_of(id, &native[..at]).unwrap_or_else(|| "tool".into());
                // The results of earlier turns are answered already.
                let is_running = message.reason != Some(ContextReason::History);
                let is_last = native.get(at + 1).is_none_or(|next| next.tool_call_id.is_none());
                Arc::new(result_message(&name, &message.content, is_running && is_last))
            }
            None if !message.tool_calls.is_empty() => calls_message(message),
            None => message.clone(),
        });
    shown.collect()
}

/// Returns an answer with its calls as text.
fn calls_message(message: &ChatMessage) -> Arc<ChatMessage> {
    let mut text = message.text().into_owned();
    for call in &message.tool_calls {
        let space = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{space}{}", call_text(call.name.as_str(), &call.arguments));
    }
    Arc::new(ChatMessage::assistant(text))
}

/// The end of the last result of a round. Without it small models repeat the call, or write about
/// the result's form instead of the answer.
const ANSWER_NOW: &str = "\n\nNow answer in plain words, or call another tool if one is needed.";

/// Returns the message of a result: in the user's role, because the model knows no other that may
/// follow its own. Its provenance still names the tool, and keeps it untrusted.
fn result_message(name: &ToolName, content: &Content, is_last: bool) -> ChatMessage {
    let mut text = result_text(name.as_str(), &content.text());
    if is_last {
        text.push_str(ANSWER_NOW);
    }
    let mut shown = Content::from(text);
    shown.extend(content.parts().iter().filter(|part| part.as_media().is_some()).cloned());
    let provenance = Provenance::new(format!("tool:{name}"), Trust::Untrusted);
    ChatMessage::new(Role::User, shown, provenance)
}

/// Returns the tools as the parser needs them.
pub(super) fn offered(tools: &ToolView) -> impl Iterator<Item = OfferedTool<'_>> {
    tools.entries().iter().map(|entry| {
        let tool = entry.registration();
        // The model reads the schema that models with native calls get; the parser goes by the
        // schema that calls are validated against.
        OfferedTool::new(tool.name.as_str(), &tool.description, &tool.parameters_schema)
            .with_shown_parameters(entry.parameters())
    })
}

fn name_of(id: &CallId, before: &[Arc<ChatMessage>]) -> Option<ToolName> {
    let mut calls = before.iter().rev().flat_map(|message| &message.tool_calls);
    calls.find(|call| call.id == *id).map(|call| call.name.clone())
}
