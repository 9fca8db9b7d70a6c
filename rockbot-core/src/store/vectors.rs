//! Vectors of texts, which processes may share.

use std::fmt;

use async_trait::async_trait;

use super::StoreError;
use crate::embedding::Embedding;
use crate::shared::share;
use crate::{Digest, Principal};

/// A cache of the vectors of texts, each under the digest of its model and its text. All of it can be
/// computed again.
///
/// Contract: the vectors of a principal are those of no other one.
#[async_trait]
pub trait VectorCache: fmt::Debug + Send + Sync + 'static {
    /// Returns the vectors of `texts` that are there, in any order. A damaged vector counts as missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the cache cannot be read.
    async fn load(&self, principal: &Principal, texts: &[Digest]) -> Result<Vec<(Digest, Embedding)>, StoreError>;

    /// Adds vectors. Returns the number of vectors of `principal` that are there now, or about it.
    ///
    /// # Errors
    ///
    /// Returns an error if the cache cannot be written.
    async fn add(&self, principal: &Principal, vectors: &[(Digest, Embedding)]) -> Result<usize, StoreError>;

    /// Removes the vectors of all texts but `texts`.
    ///
    /// # Errors
    ///
    /// Returns an error if the cache cannot be written.
    async fn retain(&self, principal: &Principal, texts: &[Digest]) -> Result<(), StoreError>;
}

share! {
    VectorCache {
        async load<'a, 'b>(principal: &'a Principal, texts: &'b [Digest]) -> Result<Vec<(Digest, Embedding)>, StoreError>;
        async add<'a, 'b>(principal: &'a Principal, vectors: &'b [(Digest, Embedding)]) -> Result<usize, StoreError>;
        async retain<'a, 'b>(principal: &'a Principal, texts: &'b [Digest]) -> Result<(), StoreError>;
    }
}
