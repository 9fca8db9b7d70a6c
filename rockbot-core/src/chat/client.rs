//! The client: the one method that asks a model.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatError, ChatRequest, ChatResponse, ModelTier};
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

    /// Whether no call is under way, as far as the client keeps count: work that can wait may begin. True unless
    /// implemented; a gateway keeps count.
    fn is_idle(&self) -> bool {
        true
    }

    /// The id of the model that is asked for `tier`, where it is known: a host may treat models differently.
    fn model_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        let _ = tier;
        None
    }

    /// The provider that is asked first for `tier`, where it is known, as OpenTelemetry names it, such as `openai`.
    fn provider_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        let _ = tier;
        None
    }
}

#[async_trait]
impl<C: ChatClient + ?Sized> ChatClient for Arc<C> {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        (**self).chat(call).await
    }

    fn is_idle(&self) -> bool {
        (**self).is_idle()
    }

    fn model_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        (**self).model_of(tier)
    }

    fn provider_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        (**self).provider_of(tier)
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
