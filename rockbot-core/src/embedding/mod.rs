//! Embeddings: texts as vectors whose directions are close for texts of similar meaning.
//!
//! * [`EmbeddingClient`]: what asks a model for vectors
//! * [`Embedding`]: one of them
//!
//! [`VectorIndex`](crate::search::VectorIndex) finds those that lie close to another one.

mod client;
mod error;
mod vector;

pub use client::{EmbeddingCall, EmbeddingClient};
pub use error::EmbeddingError;
pub(crate) use vector::dot;
pub use vector::{Embedding, NotAnEmbedding};
