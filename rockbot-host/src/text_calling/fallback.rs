//! A chat client that reads calls from the text of a model with native tool calls.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use memchr::memchr3;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, ModelInfo,
    ModelTier,
};
use rockbot_core::support::loggable;
use rockbot_core::tool::ToolView;
use rockbot_text_calls::{TextAnswer, TextCallParser};

use super::client::{TextCallingClient, native, offered};
use super::deltas::FilteredDeltas;
use super::ids::is_from_text;

/// A client that executes calls that a model wrote into its text although it was offered native
/// calls.
///
/// Small models, and servers that do not parse their model's own form, answer with the text of a
/// call now and then. Suppose that tools were offered, and that an answer has no native calls and
/// nothing but certain calls in its text. Then it becomes an answer with native calls, with the
/// ids `text00001`, `text00002`, …, and with [`ChatResponse::calls_from_text`], which the journal
/// and a trace show. Without any text, calls in the model's reasoning are read. Any other answer
/// passes unchanged. Text that may turn out to be a call is not streamed.
///
/// If the first calls of a tier's model come from its text, the model was not trained on the
/// server's form of tools. It is asked at once again, and from then on until the program ends,
/// as a [`TextCallingClient`] asks it. So is any model while all calls that a request shows come
/// from text: it would make them once more if it read them in the native form.
///
/// A server that cannot read the call that its own model wrote answers with an error
/// ([`InvalidResponse`](ChatErrorKind::InvalidResponse)) and keeps the text to itself. The model
/// is then asked once more without native tools, as a [`TextCallingClient`] asks it.
///
/// A host wraps its models in this client unless [`TurnPolicies::text_call_fallback`] is off.
///
/// [`TurnPolicies::text_call_fallback`]: crate::TurnPolicies::text_call_fallback
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use rockbot_core::testing::{ScriptedModel, mock_tool};
/// use rockbot_host::AgentHost;
///
/// let (clock, _handle) = mock_tool("clock");
/// let model = ScriptedModel::new().says(r#"{"name": "clock", "arguments": {}}"#).says("It is noon.");
/// let host = AgentHost::in_memory().chat(model).tool(clock).build()?;
/// assert_eq!(host.agent().ask("s", "What time is it?").await?.text, "It is noon.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextCallFallback<C> {
    client: TextCallingClient<C>,
    /// The parser for the tools that were offered last: they rarely change.
    parser: Mutex<Option<(ToolView, TextCallParser)>>,
    /// The form of the first calls of each tier's model.
    forms: [OnceLock<CallForm>; ModelTier::ALL.len()],
}

/// The form in which a model makes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Native,
    Text,
    /// Text that the wrapped client translates itself.
    Translated,
}

impl CallForm {
    /// Returns the form of the calls of a response.
    fn of(response: &ChatResponse) -> Self {
        if response.calls_from_text {
            Self::Translated
        } else {
            Self::Native
        }
    }
}

impl<C: ChatClient> TextCallFallback<C> {
    /// Creates a client that asks the model through `client`.
    pub fn new(client: C) -> Self {
        Self {
            client: TextCallingClient::new(client),
            parser: Mutex::new(None),
            forms: [const { OnceLock::new() }; ModelTier::ALL.len()],
        }
    }

    /// Returns the form in which the model of `tier` makes its calls; `None` until it made one.
    fn form(&self, tier: ModelTier) -> Option<CallForm> {
        self.forms[tier as usize].get().copied()
    }

    /// Reports whether the model of `tier` is asked for calls in text.
    fn asks_in_text(&self, tier: ModelTier, request: &ChatRequest) -> bool {
        match self.form(tier) {
            Some(CallForm::Text) => true,
            Some(CallForm::Translated) => false,
            Some(CallForm::Native) | None => writes_calls(&request.messages),
        }
    }

    /// Keeps the form of the first calls of the model of `tier`.
    fn learn(&self, tier: ModelTier, form: CallForm) {
        // The first form stays: a model with native calls that slips into text once keeps them.
        let _ = self.forms[tier as usize].set(form);
    }

    fn parser_for(&self, tools: &ToolView) -> TextCallParser {
        // A poisoned cache is still consistent: it is replaced as a whole.
        let mut last = self.parser.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            // The cached view keeps its entries alive, so the same address is the same tools.
            Some((known, parser)) if known.entries().as_ptr() == tools.entries().as_ptr() => parser.clone(),
            _ => {
                let parser = TextCallParser::for_tools(offered(tools));
                *last = Some((tools.clone(), parser.clone()));
                parser
            }
        }
    }

    /// Asks once more without native tools, because of `reason`.
    async fn ask_in_text(&self, call: ChatCall, reason: &str) -> Result<ChatResponse, ChatError> {
        metrics::counter!("rockbot.agent.text_requests").increment(1);
        tracing::info!(
            reason = %loggable(reason),
            "the model is asked once more, for calls in text"
        );
        // The answer that failed may have been streamed in part.
        if let Some(deltas) = &call.deltas {
            deltas.send(ChatDelta::Reset);
        }
        // Boxed: most calls need no room for a second question.
        Box::pin(self.client.chat(call)).await.inspect(count_calls)
    }

    /// Returns the answer with the calls of its text, if it has certain calls.
    fn read(&self, response: &ChatResponse, tools: &ToolView) -> Option<TextAnswer> {
        if !response.finish.allows_calls() || !response.tool_calls.is_empty() {
            return None;
        }
        if response.text.trim().is_empty() {
            // Some models call within their thoughts, which servers part from the text. The thoughts stay
            // where they are.
            let thoughts = &response.reasoning.as_ref()?.text;
            let mut answer = self.certain(thoughts, tools)?;
            answer.text.clear();
            return Some(answer);
        }
        self.certain(&response.text, tools)
    }

    /// Returns the answer in a text if the text has calls, and all its calls are certain.
    fn certain(&self, text: &str, tools: &ToolView) -> Option<TextAnswer> {
        let parse = || self.parser_for(tools).parse(text);
        let answer = may_hold_call(text).then(parse)?;
        (!answer.calls.is_empty() && answer.malformed.is_empty()).then_some(answer)
    }
}

#[async_trait]
impl<C: ChatClient> ChatClient for TextCallFallback<C> {
    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        let tools = call.request.tools.clone();
        let tier = call.request.tier.unwrap_or_default();
        if self.asks_in_text(tier, &call.request) {
            return self.client.chat(call).await.inspect(count_calls);
        }
        if tools.is_empty() {
            return self.client.native().chat(call).await;
        }
        let deltas = call.deltas.take();
        let filtered = deltas.as_ref();
        let filtered = filtered.map(|deltas| FilteredDeltas::new(deltas, &self.parser_for(&tools)));
        call.deltas = filtered.as_ref().map(FilteredDeltas::sink);
        let again = ChatCall::new(call.request.clone(), call.cx.clone()).with_deltas(deltas);
        let response = match self.client.native().chat(call).await {
            Err(error) if error.kind() == ChatErrorKind::InvalidResponse => {
                return self.ask_in_text(again, &error.to_string()).await;
            }
            answer => answer?,
        };
        if !response.tool_calls.is_empty() {
            self.learn(tier, CallForm::of(&response));
        }
        let Some(answer) = self.read(&response, &tools) else {
            if let Some(filtered) = filtered {
                filtered.finish(&TextAnswer::of_text(response.text.clone()));
            }
            return Ok(response);
        };
        // A call within thoughts says little about the form: servers part thoughts from calls.
        if self.form(tier).is_none() && !response.text.trim().is_empty() {
            // A model that was not trained on the server's form calls at random in it.
            self.learn(tier, CallForm::Text);
            return self.ask_in_text(again, "its first call was text").await;
        }
        if let Some(filtered) = filtered {
            filtered.finish(&answer);
        }
        tracing::info!(
            calls = answer.calls.len(),
            model = response.model.as_deref().unwrap_or("unnamed"),
            "the model wrote its tool calls as text; they are executed as native ones"
        );
        let response = native(response, answer);
        count_calls(&response);
        Ok(response)
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.client.native().describe(tier)
    }
}

/// Counts the calls of a response that were read from text.
fn count_calls(response: &ChatResponse) {
    if response.calls_from_text {
        metrics::counter!("rockbot.agent.text_calls").increment(response.tool_calls.len() as u64);
    }
}

/// Reports whether all calls that the request shows come from text, and there are some.
fn writes_calls(messages: &[Arc<ChatMessage>]) -> bool {
    let mut calls = messages.iter().flat_map(|message| &message.tool_calls).peekable();
    calls.peek().is_some() && calls.all(|call| is_from_text(&call.id))
}

/// Returns `false` for a text that cannot hold a call, without a look at the tools: it has
/// neither brackets nor names of several words.
fn may_hold_call(text: &str) -> bool {
    memchr3(b'{', b'[', b'<', text.as_bytes()).is_some() || memchr3(b'(', b'>', b'_', text.as_bytes()).is_some()
}
