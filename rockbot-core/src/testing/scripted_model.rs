//! A model that answers from a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatRequest, ChatResponse, DeltaSink, MicroUsd,
    ModelInfo, ModelTier, ToolCall, Usage,
};
use crate::{CallId, ToolName};

/// A [`ChatClient`] that replays prepared answers, one per call, and records its requests.
///
/// Copies share one script, so a test gives one away and keeps the other. Tool calls are named
/// `call_1`, `call_2` and so on over the whole script. An answer costs 10 tokens of input and 5
/// of output unless [`ScriptedModel::with_usage`] says otherwise. A call beyond the script fails,
/// and so does [`ScriptedModel::assert_complete`] then.
#[derive(Clone, Default)]
pub struct ScriptedModel(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    steps: VecDeque<Step>,
    tool_calls: usize,
    requests: Vec<Arc<ChatRequest>>,
    unexpected: usize,
    id: Option<Arc<str>>,
}

struct Step {
    answer: Answer,
    /// Replaces the usage of the answer.
    usage: Option<Usage>,
    /// Replaces the price of the answer.
    cost: Option<MicroUsd>,
}

enum Answer {
    Response(Box<ChatResponse>),
    Computed(Box<dyn FnOnce(&ChatRequest) -> ChatResponse + Send>),
    Failure(ChatError),
    Silence,
}

/// Usage of an answer that the script does not set.
const USAGE: Usage = Usage {
    input: 10,
    output: 5,
    cached: 0,
    reasoning: 0,
};

impl ScriptedModel {
    /// Creates a model with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the id of the model, by which a host finds the behavior and the prices of a model.
    /// Default: none.
    #[must_use]
    pub fn with_id(self, id: &str) -> Self {
        self.lock().id = Some(id.into());
        self
    }

    /// Adds an answer in words.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        self.responds(ChatResponse::text(text))
    }

    /// Adds an answer that calls one tool.
    #[must_use]
    pub fn calls(self, tool: impl Into<ToolName>, arguments: Value) -> Self {
        self.calls_all([(tool, arguments)])
    }

    /// Adds an answer that calls several tools.
    #[must_use]
    pub fn calls_all<N: Into<ToolName>>(self, calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let calls: Vec<_> = calls
            .into_iter()
            .map(|(tool, args)| self.call(tool.into(), &args))
            .collect();
        self.responds(ChatResponse::calls(calls))
    }

    /// Adds `response` as it is.
    #[must_use]
    pub fn answers(self, response: ChatResponse) -> Self {
        self.then(Answer::Response(Box::new(response)))
    }

    /// Adds an answer that `answer` computes from the request.
    #[must_use]
    pub fn answers_with(self, answer: impl FnOnce(&ChatRequest) -> ChatResponse + Send + 'static) -> Self {
        self.then(Answer::Computed(Box::new(answer)))
    }

    /// Adds a failure of this kind.
    #[must_use]
    pub fn fails(self, kind: ChatErrorKind) -> Self {
        self.fails_with(ChatError::new(kind, "the script of the model says so"))
    }

    /// Adds a failure with this error.
    #[must_use]
    pub fn fails_with(self, error: ChatError) -> Self {
        self.then(Answer::Failure(error))
    }

    /// Adds a call that the model never answers: it ends when it is dropped, or with an error when
    /// its context is cancelled and the call is not [supervised](ChatCall::is_supervised).
    #[must_use]
    pub fn hangs(self) -> Self {
        self.then(Answer::Silence)
    }

    /// Sets the usage of the last answer of the script so far.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        if let Some(step) = self.lock().steps.back_mut() {
            step.usage = Some(usage);
        }
        self
    }

    /// Sets the price that the provider reports for the last answer of the script so far. Answers
    /// have no price by default.
    #[must_use]
    pub fn with_cost(self, cost: MicroUsd) -> Self {
        if let Some(step) = self.lock().steps.back_mut() {
            step.cost = Some(cost);
        }
        self
    }

    /// Returns the requests so far, in order, calls beyond the script included. Their tools cannot
    /// be called, so that the model keeps nothing of a host that is dropped: another host can open
    /// the same data folder.
    pub fn requests(&self) -> Vec<Arc<ChatRequest>> {
        self.lock().requests.clone()
    }

    /// Checks that the script was played to its end and not beyond.
    ///
    /// # Panics
    ///
    /// Panics with the answers that were never asked for, and with the number of calls that had no
    /// answer.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn assert_complete(&self) {
        let (left, unexpected) = {
            let script = self.lock();
            let left: Vec<_> = script.steps.iter().map(|step| format!("{:?}", step.answer)).collect();
            (left, script.unexpected)
        };
        if !left.is_empty() {
            panic!("the script was not played to its end, these answers are left: {left:#?}");
        }
        if unexpected > 0 {
            panic!("the model was asked {unexpected} more time(s) than the script has answers");
        }
    }

    fn call(&self, name: ToolName, arguments: &Value) -> ToolCall {
        let mut script = self.lock();
        script.tool_calls += 1;
        ToolCall {
            id: CallId::from(format!("call_{}", script.tool_calls)),
            name,
            arguments: arguments.to_string().into(),
        }
    }

    fn responds(self, response: ChatResponse) -> Self {
        self.answers(response).with_usage(USAGE)
    }

    fn then(self, answer: Answer) -> Self {
        let usage = None;
        let cost = None;
        self.lock().steps.push_back(Step { answer, usage, cost });
        self
    }

    fn next(&self, request: &Arc<ChatRequest>) -> Option<Step> {
        let mut script = self.lock();
        script.requests.push(recorded(request));
        let step = script.steps.pop_front();
        if step.is_none() {
            script.unexpected += 1;
        }
        step
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatClient for ScriptedModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let Some(Step { answer, usage, cost }) = self.next(&call.request) else {
            let message = "the script of the model has no answer left: add one to the test";
            return Err(ChatError::new(ChatErrorKind::Other, message));
        };
        let mut response = match answer {
            Answer::Response(response) => *response,
            Answer::Computed(answer) => answer(&call.request),
            Answer::Failure(error) => return Err(error),
            Answer::Silence => return Err(silence(&call).await),
        };
        response.usage = usage.or(response.usage);
        response.cost = cost.or(response.cost);
        if let Some(deltas) = &call.deltas {
            stream(&response, deltas);
        }
        Ok(response)
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        match &self.lock().id {
            Some(id) => ModelInfo::new(id.clone()),
            None => ModelInfo::unknown(),
        }
    }
}

/// Waits for the end of a call that has no answer.
async fn silence(call: &ChatCall) -> ChatError {
    if call.is_supervised {
        return std::future::pending().await;
    }
    call.cx.cancellation().cancelled().await;
    ChatError::new(ChatErrorKind::Cancelled, "the call was cancelled")
}

/// Returns the request as it is kept: its tools show what the model saw, and keep neither the host
/// nor the lock on its folder.
fn recorded(request: &Arc<ChatRequest>) -> Arc<ChatRequest> {
    if request.tools.is_empty() {
        return request.clone();
    }
    let tools = request.tools.detached();
    Arc::new(ChatRequest::clone(request).with_tools(tools))
}

/// Hands out the answer word by word, as a model would write it.
fn stream(response: &ChatResponse, deltas: &DeltaSink) {
    let reasoning = response.reasoning.as_ref().map_or("", |reasoning| &reasoning.text);
    for piece in reasoning.split_inclusive(' ') {
        deltas.send(ChatDelta::Reasoning(piece));
    }
    for piece in response.text.split_inclusive(' ') {
        deltas.send(ChatDelta::Text(piece));
    }
    for ToolCall { id, name, .. } in &response.tool_calls {
        deltas.send(ChatDelta::ToolCall { call: id, tool: name });
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.lock();
        f.debug_struct("ScriptedModel")
            .field("left", &script.steps.len())
            .field("requests", &script.requests.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(response) if response.tool_calls.is_empty() => write!(f, "says {:?}", response.text),
            Self::Response(response) => write!(f, "calls {:?}", response.tool_calls),
            Self::Computed(_) => f.write_str("answers with what it makes of the request"),
            Self::Failure(error) => write!(f, "fails with {:?}", error.kind()),
            Self::Silence => f.write_str("hangs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CallContext;
    use crate::chat::Reasoning;
    use crate::testing::conformance::{self, ChatScene};

    fn ask(deltas: Option<DeltaSink>) -> ChatCall {
        ChatCall::new(ChatRequest::default(), CallContext::new("session")).with_deltas(deltas)
    }

    #[tokio::test]
    async fn answers_in_the_order_of_the_script() {
        let dear = Usage {
            input: 900,
            ..Usage::default()
        };
        let model = ScriptedModel::new()
            .calls_all([("a", json!({})), ("b", json!({"x": 1}))])
            .calls("c", json!({}))
            .fails(ChatErrorKind::RateLimited)
            .answers_with(|request| ChatResponse::text(request.messages.len().to_string()))
            .says("done")
            .with_usage(dear);

        let first = model.chat(ask(None)).await.unwrap();
        let ids: Vec<_> = first
            .tool_calls
            .iter()
            .map(|call| (call.id.as_str(), &*call.arguments))
            .collect();
        assert_eq!(ids, [("call_1", "{}"), ("call_2", r#"{"x":1}"#)]);
        assert_eq!(first.usage, Some(USAGE));
        assert_eq!(model.chat(ask(None)).await.unwrap().tool_calls[0].id, "call_3");
        assert_eq!(
            model.chat(ask(None)).await.unwrap_err().kind(),
            ChatErrorKind::RateLimited
        );
        assert_eq!(model.chat(ask(None)).await.unwrap(), ChatResponse::text("0"));
        assert_eq!(
            model.chat(ask(None)).await.unwrap(),
            ChatResponse {
                usage: Some(dear),
                ..ChatResponse::text("done")
            }
        );
        model.assert_complete();
        assert_eq!(model.requests().len(), 5);
    }

    #[tokio::test]
    async fn keeps_the_promises_of_a_chat_client() {
        let response = ChatResponse {
            text: "let me look".to_owned(),
            reasoning: Some(Reasoning {
                text: "no idea".to_owned(),
                details: None,
            }),
            ..ScriptedModel::new()
                .calls("look", json!({}))
                .chat(ask(None))
                .await
                .unwrap()
        };
        let make = async |scene| {
            let step = |model: ScriptedModel, _| match scene {
                ChatScene::Answers => model.answers(response.clone()).with_usage(USAGE),
                ChatScene::RateLimited => model.fails(ChatErrorKind::RateLimited),
                ChatScene::CutStream => model.fails(ChatErrorKind::CutStream),
                ChatScene::Hangs => model.hangs(),
            };
            (0..2).fold(ScriptedModel::new().with_id("scripted"), step)
        };
        conformance::chat_client(make, ChatRequest::default()).await;
    }

    #[tokio::test]
    async fn streams_word_by_word_to_a_listener() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = DeltaSink::new({
            let seen = seen.clone();
            move |delta| seen.lock().unwrap().push(format!("{delta:?}"))
        });
        ScriptedModel::new()
            .says("one two")
            .chat(ask(Some(sink)))
            .await
            .unwrap();
        assert_eq!(*seen.lock().unwrap(), [r#"Text("one ")"#, r#"Text("two")"#]);
    }

    #[tokio::test]
    #[should_panic(expected = "asked 1 more time(s)")]
    async fn a_call_beyond_the_script_fails_and_is_told_at_the_end() {
        let model = ScriptedModel::new();
        assert_eq!(model.chat(ask(None)).await.unwrap_err().kind(), ChatErrorKind::Other);
        model.assert_complete();
    }

    #[test]
    #[should_panic(expected = "hangs")]
    fn what_is_left_of_the_script_is_told_at_the_end() {
        ScriptedModel::new().hangs().assert_complete();
    }
}
