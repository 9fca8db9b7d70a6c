//! How memories are found by their meaning.

use std::path::PathBuf;
use std::time::Duration;

/// How a [`SemanticMemory`](super::SemanticMemory) finds entries.
#[derive(Debug, Clone)]
pub struct SemanticMemoryOptions {
    /// The folder in which vectors are kept. Default: none, so that each process asks for all of them;
    /// [`Memory::embeddings`](crate::Memory::embeddings) takes `embeddings` below the host's data folder, if it has one.
    pub folder: Option<PathBuf>,
    /// How long a search waits for the vectors of the entries and of its query. Default 1 second: a host gives those
    /// who know something 2.
    pub query_time_limit: Duration,
    /// What is less similar than this has nothing to do with the query, from 0 to 1. Default 0.3, which suits most models.
    /// Some have all texts close together: for those of the E5 family 0.75 is better.
    pub min_similarity: f32,
    /// How much of a text is embedded, in bytes. Default 8 000, about 2 000 tokens; smaller models take 512.
    pub max_text: usize,
}

impl Default for SemanticMemoryOptions {
    fn default() -> Self {
        Self {
            folder: None,
            query_time_limit: Duration::from_secs(1),
            min_similarity: 0.3,
            max_text: 8_000,
        }
    }
}
