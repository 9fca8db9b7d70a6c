//! Long-term memory that is found by what it means, too: [`SemanticMemory`].
//!
//! **Texts leave this process**: what entries say, and what is searched for, goes to the [`EmbeddingClient`], which for
//! most is a server. A host searches for what people say and what the agent answers. Without this store nobody is asked
//! for vectors.
//!
//! **Writing** never waits for vectors: an entry is found by its words at once, and by its meaning when the [`Embedder`]
//! has come to it. Its content is what counts; its category and tags are found by their words. Only live entries have
//! vectors, so archived ones are found by their words.
//!
//! **Searching** asks for the vector of the query, compares it with all, and joins what is near with what has the words.
//! When there is no vector in time, words alone count, and nobody asks the model again for 30 seconds.
//!
//! **Vectors are kept** in `vectors.jsonl`, those of other principals in `@{principal}/vectors.jsonl`, by the digest of
//! the model's name and the text: so what entries say is not embedded anew after a restart, and vectors of different
//! models never meet. The file can be deleted while nobody has it open; what is missing or damaged in it is asked for
//! again. It grows to twice as many vectors as there are entries, and 1000 more; then those that no entry has go.
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
mod vector_file;

pub use embedder::Embedder;
pub use memory::SemanticMemory;
pub use options::SemanticMemoryOptions;
