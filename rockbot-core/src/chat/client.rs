//! The chat client: the trait that asks a model, its call, and the sink of streamed pieces.
//!
//! A client describes its model in one required method (`ChatClient::describe`), so that no
//! wrapper can forget to forward it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier, RequestCache};
use crate::shared::share;
use crate::{CallContext, CallId, ToolName};

/// A client of chat models.
///
/// Wire clients implement it, routers and gateways around them, and scripted models in tests. The
/// call resolves when the answer is complete; an implementation streams on the wire only if
/// `call.deltas` is set, and sends each piece to it.
///
/// A client must be cancellation-safe: a host drops the future of a call that is cancelled or out
/// of time. It never returns tool calls of an answer that did not finish: a cut stream is an
/// error.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
///
/// /// A client that counts calls, and forwards them.
/// struct Counted<C> {
///     client: C,
///     calls: AtomicUsize,
/// }
///
/// #[async_trait::async_trait]
/// impl<C: ChatClient> ChatClient for Counted<C> {
///     async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.chat(call).await
///     }
///
///     fn describe(&self, tier: ModelTier) -> ModelInfo {
///         self.client.describe(tier)
///     }
/// }
/// ```
#[async_trait]
pub trait ChatClient: Send + Sync + 'static {
    /// Asks the model, and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// Returns a [`ChatError`] whose kind tells whether a retry, another model or a smaller context
    /// helps.
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError>;

    /// Returns the client's knowledge of the model that it asks for `tier`.
    ///
    /// Required, so that a client that wraps another client cannot forget to forward it: a wrapper
    /// returns the answer of its inner client. A client that knows nothing returns
    /// [`ModelInfo::unknown`]. A host asks before each model call, so the answer must be cheap.
    fn describe(&self, tier: ModelTier) -> ModelInfo;
}

impl dyn ChatClient {
    /// Returns `true` if the client reports no call in flight for any tier, so that background work
    /// may begin.
    ///
    /// Not a method of the trait: it follows from [`describe`](ChatClient::describe), so no client
    /// can answer otherwise.
    pub fn is_idle(&self) -> bool {
        ModelTier::ALL.into_iter().all(|tier| !self.describe(tier).is_busy)
    }

    /// Returns `answer`, which this client gave for `tier`, with the name of the model as the
    /// client describes it if the answer has no name.
    ///
    /// Some servers and clients leave the name out, and prices are found by it. A client that chooses
    /// between models calls this on the client that answered; the host does so for its own client.
    #[must_use]
    pub fn name_model(&self, mut answer: ChatResponse, tier: ModelTier) -> ChatResponse {
        if answer.model.is_none() {
            answer.model = self.describe(tier).model;
        }
        answer
    }
}

share! {
    ChatClient {
        async chat(call: ChatCall) -> Result<ChatResponse, ChatError>;
        fn describe(tier: ModelTier) -> ModelInfo;
    }
}

/// A call of a model, as tower layers on model calls see it. Cheap to clone: a retry clones it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatCall {
    /// Request: messages, tools and sampling parameters.
    pub request: Arc<ChatRequest>,
    /// Sink of the answer's pieces; `None` if the caller wants the whole answer only.
    pub deltas: Option<DeltaSink>,
    /// Context of the call: session, deadline, cancellation and priority.
    pub cx: CallContext,
    /// Cache that the calls of a turn share; `None` if no further request will repeat this request.
    pub cache: Option<RequestCache>,
    /// `true` if the caller drops the call when its context is cancelled or its deadline has
    /// passed, so that no client need watch either. Code that lets a call outlive its own future,
    /// such as code that spawns the call, sets it to `false`. Default `false`.
    pub is_supervised: bool,
}

impl ChatCall {
    /// Creates a call whose caller wants the whole answer only.
    pub fn new(request: impl Into<Arc<ChatRequest>>, cx: CallContext) -> Self {
        Self {
            request: request.into(),
            deltas: None,
            cx,
            cache: None,
            is_supervised: false,
        }
    }

    /// Sets the sink of the answer's pieces. Default `None`: the caller wants the whole answer only.
    #[must_use]
    pub fn with_deltas(mut self, deltas: impl Into<Option<DeltaSink>>) -> Self {
        self.deltas = deltas.into();
        self
    }

    /// Sets the cache that the calls of a turn share. Default `None`.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Into<Option<RequestCache>>) -> Self {
        self.cache = cache.into();
        self
    }

    /// Sets whether the caller drops the call when its context is cancelled or its deadline has
    /// passed. Default `false`.
    #[must_use]
    pub fn with_supervision(mut self, is_supervised: bool) -> Self {
        self.is_supervised = is_supervised;
        self
    }

    /// Replaces the request.
    #[must_use]
    pub fn with_request(mut self, request: impl Into<Arc<ChatRequest>>) -> Self {
        self.request = request.into();
        self
    }

    /// Replaces the context of the call.
    #[must_use]
    pub fn with_context(mut self, cx: CallContext) -> Self {
        self.cx = cx;
        self
    }
}

/// A piece of an answer that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatDelta<'a> {
    /// More text of the answer.
    Text(&'a str),
    /// More of the model's reasoning.
    Reasoning(&'a str),
    /// The model began to write this tool call. It may still fail to finish it.
    ToolCall {
        /// The call's id.
        call: &'a CallId,
        /// The tool's name.
        tool: &'a ToolName,
    },
    /// All pieces of this answer so far are void: the call is attempted again.
    Reset,
}

/// A sink of the pieces of an answer, in order, as they arrive. The client calls it from its
/// task, so it must not block.
#[derive(Clone)]
pub struct DeltaSink(Arc<dyn Fn(ChatDelta<'_>) + Send + Sync>);

impl DeltaSink {
    /// Creates a sink that calls `receive` with each piece.
    pub fn new(receive: impl Fn(ChatDelta<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Sends one piece.
    pub fn send(&self, delta: ChatDelta<'_>) {
        (self.0)(delta);
    }
}

impl fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeltaSink")
    }
}
