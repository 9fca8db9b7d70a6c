//! Helpers that the tests of several modules share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, DeltaSink,
    ModelInfo, ModelTier,
};
use rockbot_core::context::Priority;
use tokio::time::sleep;

/// A subscriber that records the fields of each event of this crate.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Returns the events so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("rockbot_llm")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Returns a call of a user that is not streamed.
pub(crate) fn call() -> ChatCall {
    ChatCall::new(ChatRequest::new([ChatMessage::user("hi")]), CallContext::new("s"))
}

/// Returns a call for `tier` with `priority`.
pub(crate) fn call_of(tier: ModelTier, priority: Priority) -> ChatCall {
    let request = ChatRequest::default().with_tier(tier);
    ChatCall::new(request, CallContext::new("s").with_priority(priority))
}

/// Returns a call that is streamed, and a function that returns its deltas so far: words, or
/// `reset`.
pub(crate) fn streamed() -> (ChatCall, impl Fn() -> Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = DeltaSink::new({
        let seen = seen.clone();
        move |delta| {
            seen.lock().unwrap().push(match delta {
                ChatDelta::Text(text) => text.to_owned(),
                _ => "reset".to_owned(),
            });
        }
    });
    let call = call().with_deltas(sink);
    (call, move || seen.lock().unwrap().clone())
}

/// A model that breaks off in the middle of its first answers.
pub(crate) struct Half(Mutex<VecDeque<ChatErrorKind>>);

impl Half {
    /// Creates a model that fails once with each of `kinds`, in order, and then answers.
    pub(crate) fn failing(kinds: impl IntoIterator<Item = ChatErrorKind>) -> Self {
        Self(Mutex::new(kinds.into_iter().collect()))
    }
}

#[async_trait]
impl ChatClient for Half {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let say = |text| call.deltas.iter().for_each(|sink| sink.send(ChatDelta::Text(text)));
        say("half ");
        if let Some(kind) = self.0.lock().unwrap().pop_front() {
            return Err(ChatError::new(kind, "broke off"));
        }
        say("whole");
        Ok(ChatResponse::text("half whole"))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// A model that takes a second, and counts the calls that it has and had at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slow {
    running: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
    /// The priorities of the calls, in their order.
    pub(crate) order: Arc<Mutex<Vec<Priority>>>,
}

#[async_trait]
impl ChatClient for Slow {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let _ends = Ends(&self.running);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.order.lock().unwrap().push(call.cx.priority());
        sleep(Duration::from_secs(1)).await;
        Ok(ChatResponse::text("done"))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
