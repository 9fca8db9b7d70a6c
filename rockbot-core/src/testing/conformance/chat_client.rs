//! The conformance suite of [`ChatClient`].

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;

use crate::CallContext;
use crate::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatRequest, ChatResponse, DeltaSink, ModelTier,
    Reasoning,
};

/// Number of times that a call is polled before it is given up.
const POLLS: usize = 64;

/// The behavior of the model behind a client, in a part of the suite. It is the same for every call
/// of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatScene {
    /// The model answers. The answer has token counts, and names the model, or the client's
    /// description does.
    Answers,
    /// The provider refuses the call, since its rate limit is exceeded.
    RateLimited,
    /// A streamed answer breaks off before its end.
    CutStream,
    /// The model never answers.
    Hangs,
}

/// Checks that the clients that `make` creates keep the contract of [`ChatClient`] when they send
/// `request` to a model that behaves as in the [`ChatScene`]: a recorded server, or a script.
///
/// Clients may repeat a call that failed. Then run the suite on a paused clock.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn chat_client<C: ChatClient>(make: impl AsyncFn(ChatScene) -> C, request: ChatRequest) {
    let request = Arc::new(request);
    answers_without_a_listener(&make(ChatScene::Answers).await, &request).await;
    hands_out_pieces_that_add_up_to_the_answer(&make(ChatScene::Answers).await, &request).await;
    counts_tokens_and_names_the_model(&make(ChatScene::Answers).await, &request).await;
    reports_an_error_by_its_kind(&make(ChatScene::RateLimited).await, &request).await;
    makes_no_answer_of_a_cut_stream(&make(ChatScene::CutStream).await, &request).await;
    ends_when_it_is_cancelled(&make(ChatScene::Hangs).await, &request).await;
    is_idle_after_a_call_was_dropped(&make(ChatScene::Hangs).await, &request).await;
}

async fn answers_without_a_listener(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let response = ask(client, request, None).await;
    assert!(
        !response.text.is_empty() || !response.tool_calls.is_empty(),
        "an answer has text or tool calls"
    );
}

async fn hands_out_pieces_that_add_up_to_the_answer(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let pieces = Arc::new(Mutex::new(Pieces::default()));
    let sink = DeltaSink::new({
        let pieces = pieces.clone();
        move |delta| pieces.lock().expect("no receiver panics").add(&delta)
    });
    let response = ask(client, request, Some(sink)).await;
    let expected = Pieces {
        text: response.text,
        reasoning: response
            .reasoning
            .map_or_else(String::new, |Reasoning { text, .. }| text),
        calls: response
            .tool_calls
            .iter()
            .map(|call| format!("{} {}", call.id, call.name))
            .collect(),
    };
    let pieces = pieces.lock().expect("no receiver panics");
    assert_eq!(
        *pieces, expected,
        "the pieces since the last reset add up to the answer"
    );
}

async fn counts_tokens_and_names_the_model(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let tier = request.tier.unwrap_or_default();
    for deltas in [None, Some(silent())] {
        let how = if deltas.is_some() { "streamed" } else { "whole" };
        let response = ask(client, request, deltas).await;
        assert!(
            response.usage.is_some_and(|usage| usage.total() > 0),
            "a {how} answer has token counts, got {:?}",
            response.usage
        );
        let model = response.model.or_else(|| client.describe(tier).model);
        assert!(
            model.is_some_and(|model| !model.is_empty()),
            "a {how} answer names its model, or the client does: else it has no price"
        );
    }
}

async fn reports_an_error_by_its_kind(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    for deltas in [None, Some(silent())] {
        let error = failure(client, request, deltas).await;
        assert_eq!(
            error.kind(),
            ChatErrorKind::RateLimited,
            "the error has its kind: {error}"
        );
        assert!(error.retry_helps(), "a rate limit passes: {error}");
        assert!(!error.message().is_empty(), "the error is told in words");
    }
}

async fn makes_no_answer_of_a_cut_stream(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let error = failure(client, request, Some(silent())).await;
    assert_eq!(
        error.kind(),
        ChatErrorKind::CutStream,
        "a cut stream is an error: {error}"
    );
}

async fn ends_when_it_is_cancelled(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    for deltas in [None, Some(silent())] {
        let cancellation = CancellationToken::new();
        let cx = CallContext::new("session").with_cancellation(cancellation.clone());
        let call = ChatCall::new(request.clone(), cx).with_deltas(deltas);
        let mut asking = pin!(client.chat(call));
        poll_a_while(asking.as_mut()).await;
        cancellation.cancel();
        let error = asking.await.expect_err("a cancelled call has no answer");
        assert_eq!(
            error.kind(),
            ChatErrorKind::Cancelled,
            "a cancelled call says so: {error}"
        );
    }
}

async fn is_idle_after_a_call_was_dropped(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    {
        let call = ChatCall::new(request.clone(), CallContext::new("session")).with_supervision(true);
        poll_a_while(pin!(client.chat(call))).await;
    }
    let is_busy = ModelTier::ALL.into_iter().any(|tier| client.describe(tier).is_busy);
    assert!(!is_busy, "a call that was dropped is no longer in flight");
}

/// Polls a call that cannot end, so that its request is under way.
async fn poll_a_while(mut asking: Pin<&mut impl Future<Output = Result<ChatResponse, ChatError>>>) {
    let mut left = POLLS;
    let poll = |cx: &mut Context<'_>| {
        assert!(
            asking.as_mut().poll(cx).is_pending(),
            "a model that hangs gives no answer"
        );
        left -= 1;
        if left == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    };
    poll_fn(poll).await;
}

/// Returns a sink that drops what it gets.
fn silent() -> DeltaSink {
    DeltaSink::new(|_| ())
}

/// Text that was streamed since the last reset.
#[derive(Debug, Default, PartialEq)]
struct Pieces {
    text: String,
    reasoning: String,
    calls: Vec<String>,
}

impl Pieces {
    fn add(&mut self, delta: &ChatDelta<'_>) {
        match delta {
            ChatDelta::Text(text) => self.text.push_str(text),
            ChatDelta::Reasoning(text) => self.reasoning.push_str(text),
            ChatDelta::ToolCall { call, tool } => self.calls.push(format!("{call} {tool}")),
            ChatDelta::Reset => *self = Self::default(),
        }
    }
}

async fn ask(client: &impl ChatClient, request: &Arc<ChatRequest>, deltas: Option<DeltaSink>) -> ChatResponse {
    let answered = try_ask(client, request, deltas).await;
    answered.expect("the client can answer the request of the suite")
}

async fn failure(client: &impl ChatClient, request: &Arc<ChatRequest>, deltas: Option<DeltaSink>) -> ChatError {
    let answered = try_ask(client, request, deltas).await;
    answered.expect_err("a call that failed has no answer")
}

async fn try_ask(
    client: &impl ChatClient,
    request: &Arc<ChatRequest>,
    deltas: Option<DeltaSink>,
) -> Result<ChatResponse, ChatError> {
    let call = ChatCall::new(request.clone(), CallContext::new("session")).with_deltas(deltas);
    client.chat(call).await
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::chat::ModelInfo;
    use crate::testing::ScriptedModel;

    /// A client that breaks one promise.
    struct Broken {
        model: ScriptedModel,
        scene: ChatScene,
        promise: Promise,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Promise {
        Usage,
        Name,
        Kind,
        Cut,
        Cancellation,
        Idle,
    }

    #[async_trait]
    impl ChatClient for Broken {
        async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
            if self.promise == Promise::Cancellation {
                call.cx = CallContext::new("session");
            }
            let answered = self.model.chat(call).await;
            match self.promise {
                Promise::Usage => answered.map(|answer| answer.with_usage(None)),
                Promise::Name => answered.map(|answer| ChatResponse { model: None, ..answer }),
                Promise::Kind => answered.map_err(|error| ChatError::new(ChatErrorKind::Other, error.to_string())),
                Promise::Cut if self.scene == ChatScene::CutStream => Ok(ChatResponse::text("three sh")),
                _ => answered,
            }
        }

        fn describe(&self, tier: ModelTier) -> ModelInfo {
            match self.promise {
                Promise::Name => ModelInfo::unknown(),
                promise => self.model.describe(tier).with_busy(promise == Promise::Idle),
            }
        }
    }

    async fn check(promise: Promise) {
        let make = async |scene| {
            let step = |model: ScriptedModel, _| match scene {
                ChatScene::Answers => model.says("three short words"),
                ChatScene::RateLimited => model.fails(ChatErrorKind::RateLimited),
                ChatScene::CutStream => model.fails(ChatErrorKind::CutStream),
                ChatScene::Hangs => model.hangs(),
            };
            let model = (0..2).fold(ScriptedModel::new().with_id("scripted"), step);
            Broken { model, scene, promise }
        };
        let suite = chat_client(make, ChatRequest::default());
        let ended = tokio::time::timeout(std::time::Duration::from_secs(1), suite).await;
        ended.expect("the suite ends, where the client does");
    }

    #[tokio::test]
    #[should_panic(expected = "has token counts")]
    async fn an_answer_without_usage_is_found() {
        check(Promise::Usage).await;
    }

    #[tokio::test]
    #[should_panic(expected = "names its model")]
    async fn an_answer_without_a_model_is_found() {
        check(Promise::Name).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the error has its kind")]
    async fn an_error_without_a_kind_is_found() {
        check(Promise::Kind).await;
    }

    #[tokio::test]
    #[should_panic(expected = "a call that failed has no answer")]
    async fn half_an_answer_is_found() {
        check(Promise::Cut).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "where the client does")]
    async fn a_call_that_outlives_its_cancellation_is_found() {
        check(Promise::Cancellation).await;
    }

    #[tokio::test]
    #[should_panic(expected = "no longer in flight")]
    async fn a_call_that_stays_in_flight_is_found() {
        check(Promise::Idle).await;
    }
}
