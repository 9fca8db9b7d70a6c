//! Embeddings: texts as vectors whose directions are close for texts of similar meaning.
//!
//! * [`EmbeddingClient`]: the client that asks a model for vectors
//! * [`Embedding`]: a vector
//!
//! [`VectorIndex`](crate::search::VectorIndex) finds the vectors that lie close to a given
//! vector.

mod client;
mod error;

pub use client::{EmbeddingCall, EmbeddingClient};
pub use error::EmbeddingError;
pub use rockbot_search::{Embedding, NotAnEmbedding};
