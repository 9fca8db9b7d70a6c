//! The client: the one method that asks a model for vectors.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Embedding, EmbeddingError};
use crate::CallContext;

/// Asks a model for the vectors of texts.
///
/// All vectors of one client have the same dimension. An implementation that talks to a server sends it the texts: who
/// uses one decides who may read them.
#[async_trait]
pub trait EmbeddingClient: fmt::Debug + Send + Sync + 'static {
    /// The model's name. Vectors of models with different names are never compared.
    fn model(&self) -> &str;

    /// The vectors of the texts, one for each, in their order; none when there are no texts.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them has no vector, when the call is cancelled and when its deadline passes.
    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError>;
}

#[async_trait]
impl<C: EmbeddingClient + ?Sized> EmbeddingClient for Arc<C> {
    fn model(&self) -> &str {
        (**self).model()
    }

    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError> {
        (**self).embed(call).await
    }
}

/// One call of an [`EmbeddingClient`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddingCall {
    /// The texts. Many servers refuse empty ones.
    pub texts: Arc<[String]>,
    /// For whom, until when.
    pub cx: CallContext,
}

impl EmbeddingCall {
    /// A call for the vectors of `texts`.
    pub fn new(texts: impl Into<Arc<[String]>>, cx: CallContext) -> Self {
        Self {
            texts: texts.into(),
            cx,
        }
    }
}
