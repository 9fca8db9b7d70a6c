//! A model that writes its calls into its answers, made to look like one with native calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{HoldBack, TextAnswer, TextCalls, instructions, result_message};
use crate::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatMessage, ChatRequest, ChatResponse, DeltaSink, FinishReason,
    ModelInfo, ModelTier, Provenance, Role,
};
use crate::tool::ToolView;
use crate::{CallId, ToolName};

/// Asks a model that has no native tool calls.
///
/// Tools become a text that teaches how to call them, calls and results in the conversation become text, and calls in
/// an answer become native ones. A call that cannot be read is answered once, at once, with what is wrong with it;
/// the usage of both answers is added up. Text that may turn out to be a call is not streamed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::chat::ChatError> {
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::text_calls::TextCallingClient;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest};
/// use rockbot_core::testing::ScriptedModel;
///
/// let model = TextCallingClient::new(ScriptedModel::new().says("Hello."));
/// let request = ChatRequest::new([ChatMessage::user("Hi!")]).into();
/// let answer = model.chat(ChatCall { request, deltas: None, cx: CallContext::new("s") }).await?;
/// assert_eq!(answer.text, "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TextCallingClient<C> {
    client: C,
}

impl<C: ChatClient> TextCallingClient<C> {
    /// Asks `client`.
    pub fn new(client: C) -> Self {
        Self { client }
    }

    /// Asks once, and takes the answer apart.
    async fn ask(
        &self,
        request: &ChatRequest,
        calls: &TextCalls,
        call: &ChatCall,
    ) -> Result<(ChatResponse, TextAnswer), ChatError> {
        let shown = call.deltas.as_ref().map(|deltas| Shown::new(deltas, calls));
        let inner = ChatCall {
            request: Arc::new(request.clone()),
            deltas: shown.as_ref().map(Shown::sink),
            cx: call.cx.clone(),
        };
        let response = self.client.chat(inner).await?;
        // The end of a text that was cut looks like a forgotten bracket.
        let answer = match response.finish {
            FinishReason::Length | FinishReason::ContentFilter => TextAnswer {
                text: response.text.clone(),
                ..TextAnswer::default()
            },
            _ => calls.parse(&response.text),
        };
        if let Some(shown) = shown {
            shown.finish(&answer);
        }
        Ok((response, answer))
    }
}

#[async_trait]
impl<C: ChatClient> ChatClient for TextCallingClient<C> {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let calls = TextCalls::of(&call.request.tools);
        let mut request = in_text(&call.request);
        let (mut response, mut answer) = self.ask(&request, &calls, &call).await?;
        if let Some(teaching) = answer.teaching.take().filter(|_| answer.calls.is_empty()) {
            if let Some(deltas) = &call.deltas {
                deltas.send(ChatDelta::Reset);
            }
            let said = ChatMessage::assistant(&*response.text);
            let told = ChatMessage::text_of(Role::User, teaching, Provenance::HOST);
            request.messages.extend([said, told].map(Arc::new));
            let (usage, cost) = (response.usage, response.cost);
            (response, answer) = self.ask(&request, &calls, &call).await?;
            response.usage = match (usage, response.usage) {
                (Some(mut first), Some(second)) => {
                    first += second;
                    Some(first)
                }
                (first, second) => first.or(second),
            };
            // When the price of one is not known, that of both is not.
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

/// The answer with its calls as native ones.
fn native(response: ChatResponse, answer: TextAnswer) -> ChatResponse {
    let call = |(index, call): (usize, super::TextCall)| call.into_call(CallId::from(format!("text_{}", index + 1)));
    let tool_calls: Vec<_> = answer.calls.into_iter().enumerate().map(call).collect();
    ChatResponse {
        text: answer.text,
        finish: match tool_calls.is_empty() {
            true => response.finish,
            false => FinishReason::ToolCalls,
        },
        tool_calls,
        ..response
    }
}

/// The request as the model can read it.
fn in_text(request: &ChatRequest) -> ChatRequest {
    let said = &request.messages;
    let mut messages: Vec<_> = said
        .iter()
        .enumerate()
        .map(|(at, message)| spoken(message, &said[..at]))
        .collect();
    if !request.tools.is_empty() {
        let at = usize::from(messages.first().is_some_and(|first| first.role == Role::System));
        messages.insert(at, Arc::new(ChatMessage::system(instructions(&request.tools))));
    }
    ChatRequest {
        messages,
        tools: ToolView::default(),
        ..request.clone()
    }
}

/// A message without native calls and results. The call of a result is the last one `before` it with its id: ids come
/// again in later answers.
fn spoken(message: &Arc<ChatMessage>, before: &[Arc<ChatMessage>]) -> Arc<ChatMessage> {
    if message.role == Role::Tool {
        let name = message.tool_call_id.as_ref().and_then(|id| name_of(id, before));
        return Arc::new(result_message(&name.unwrap_or_else(|| "tool".into()), &message.text()));
    }
    if message.tool_calls.is_empty() {
        return message.clone();
    }
    let mut text = message.text().into_owned();
    for call in &message.tool_calls {
        let space = if text.is_empty() { "" } else { "\n\n" };
        let (name, arguments) = (&call.name, &call.arguments);
        text = format!("{text}{space}tool_call_name: {name}\ntool_call_arguments: {arguments}");
    }
    Arc::new(ChatMessage::assistant(text))
}

fn name_of(id: &CallId, before: &[Arc<ChatMessage>]) -> Option<ToolName> {
    let mut calls = before.iter().rev().flat_map(|message| &message.tool_calls);
    calls.find(|call| call.id == *id).map(|call| call.name.clone())
}

/// What of an answer is streamed while it is written.
struct Shown {
    deltas: DeltaSink,
    hold: Arc<Mutex<HoldBack>>,
    calls: TextCalls,
}

impl Shown {
    fn new(deltas: &DeltaSink, calls: &TextCalls) -> Self {
        Self {
            deltas: deltas.clone(),
            hold: Arc::new(Mutex::new(calls.hold_back())),
            calls: calls.clone(),
        }
    }

    fn sink(&self) -> DeltaSink {
        let (deltas, hold, calls) = (self.deltas.clone(), self.hold.clone(), self.calls.clone());
        DeltaSink::new(move |delta| match delta {
            ChatDelta::Text(piece) => {
                let text = lock(&hold).push(piece);
                if !text.is_empty() {
                    deltas.send(ChatDelta::Text(&text));
                }
            }
            ChatDelta::Reset => {
                *lock(&hold) = calls.hold_back();
                deltas.send(ChatDelta::Reset);
            }
            other => deltas.send(other),
        })
    }

    /// Shows what is left of the answer.
    fn finish(self, answer: &TextAnswer) {
        let hold = lock(&self.hold);
        let rest = hold.rest_of(answer);
        if !rest.is_empty() {
            self.deltas.send(ChatDelta::Text(rest));
        }
    }
}

fn lock(hold: &Mutex<HoldBack>) -> MutexGuard<'_, HoldBack> {
    // No code that can panic runs under the lock.
    hold.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::TextCallingClient;
    use crate::testing::conformance;

    #[test]
    fn it_describes_the_models_of_the_wrapped_client() {
        conformance::chat_wrapper(TextCallingClient::new);
    }
}
