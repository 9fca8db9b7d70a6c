//! The client: the one method that asks a model.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier};
use crate::{CallContext, CallId, ToolName};

/// Asks a model.
///
/// Implemented by wire clients, by routers between them, and by scripted models in tests. The call resolves
/// when the answer is complete; an implementation streams on the wire only when `call.deltas` is there.
///
/// An implementation never returns tool calls of an answer that did not finish: a cut stream is an error.
#[async_trait]
pub trait ChatClient: Send + Sync + 'static {
    /// Asks once and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// Fails with a [`ChatError`] whose kind tells whether a retry, another model or a smaller context helps.
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError>;

    /// Returns what the client knows about the model that it asks for `tier`.
    ///
    /// Required, so that a client that wraps another one cannot forget to forward it: a wrapper returns what the inner
    /// client returns. A client that knows nothing returns [`ModelInfo::unknown`]. A host asks before each model call,
    /// so the answer must be cheap.
    fn describe(&self, tier: ModelTier) -> ModelInfo;
}

impl dyn ChatClient {
    /// Returns `true` if the client reports no call in flight for any tier, so that background work may begin.
    ///
    /// Not a method of the trait: it follows from [`describe`](ChatClient::describe), so no client can answer otherwise.
    pub fn is_idle(&self) -> bool {
        ModelTier::ALL.into_iter().all(|tier| !self.describe(tier).is_busy)
    }
}

#[async_trait]
impl<C: ChatClient + ?Sized> ChatClient for Arc<C> {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        (**self).chat(call).await
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        (**self).describe(tier)
    }
}

/// One call of a model: what tower layers on model calls see.
#[derive(Debug, Clone)]
pub struct ChatCall {
    /// What is asked.
    pub request: Arc<ChatRequest>,
    /// Who wants the answer piece by piece, if anybody.
    pub deltas: Option<DeltaSink>,
    /// For whom, until when.
    pub cx: CallContext,
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
    /// Forget every piece of this answer so far: the call is tried again.
    Reset,
}

/// Receives the pieces of an answer, in order, as they arrive. Called from the client: must not block.
#[derive(Clone)]
pub struct DeltaSink(Arc<dyn Fn(ChatDelta<'_>) + Send + Sync>);

impl DeltaSink {
    /// A sink that calls `receive` with each piece.
    pub fn new(receive: impl Fn(ChatDelta<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Hands on one piece.
    pub fn send(&self, delta: ChatDelta<'_>) {
        (self.0)(delta);
    }
}

impl fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeltaSink")
    }
}
