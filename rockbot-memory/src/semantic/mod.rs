//! Long-term memory that is also searched by meaning: [`SemanticMemory`].
//!
//! **Texts leave this process**: entries and queries are sent to the [`EmbeddingClient`], which
//! is usually a server. A host searches for users' messages and the agent's answers. Without this
//! store nothing is embedded.
//!
//! **Writes** never wait for vectors: an entry is found by its words at once, and by meaning when
//! the [`Embedder`] has embedded it. Only its content is embedded; category and tags are found by
//! words. Archived entries have no vectors and are found by words.
//!
//! **Searches** embed the query, compare it with all vectors (an exact search), and fuse the hits
//! with the hits by words. Without a vector in time, search falls back to words, and for 30
//! seconds no search waits for the model.
//!
//! **Vectors are cached** in a folder or a database, by the digest of the model's name and the text:
//! an unchanged entry is not embedded again after a restart or in another process, and vectors of
//! different models never mix. The cache may be deleted while the store is closed; missing or
//! damaged vectors are computed again. It is compacted when it has more than twice as many vectors
//! as there are entries, plus 1000.
//!
//! [`EmbeddingClient`]: rockbot_core::embedding::EmbeddingClient

mod embedder;
mod fuse;
mod health;
mod index;
mod memory;
mod options;
mod pending;
mod queries;
mod shared;
#[cfg(test)]
mod tests;

pub use embedder::Embedder;
pub use memory::SemanticMemory;
pub use options::SemanticMemoryOptions;
