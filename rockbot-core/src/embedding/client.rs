//! The client trait: the method that asks an embedding model for vectors.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Embedding, EmbeddingError};
use crate::CallContext;
use crate::shared::share;

/// A client of an embedding model.
///
/// All vectors of one client have the same dimension. An implementation that talks to a server
/// sends it the texts, so the choice of a client decides who can read them.
#[async_trait]
pub trait EmbeddingClient: fmt::Debug + Send + Sync + 'static {
    /// Returns the model's name. Vectors of models with different names are never compared.
    fn model(&self) -> &str;

    /// Returns the vectors of the texts, one for each, in order; an empty list for no texts.
    ///
    /// # Errors
    ///
    /// Returns an error if a text has no vector, when the call is cancelled and when its deadline
    /// passes.
    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError>;
}

share! {
    EmbeddingClient {
        async embed(call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError>;
        fn model() -> &str;
    }
}

/// A call of an [`EmbeddingClient`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddingCall {
    /// Texts to embed. Many servers reject empty texts.
    pub texts: Arc<[String]>,
    /// Context of the call: principal, cancellation and deadline.
    pub cx: CallContext,
}

impl EmbeddingCall {
    /// Creates a call for the vectors of `texts`.
    pub fn new(texts: impl Into<Arc<[String]>>, cx: CallContext) -> Self {
        Self {
            texts: texts.into(),
            cx,
        }
    }
}
