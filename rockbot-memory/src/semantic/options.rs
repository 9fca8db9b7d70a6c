//! Options of semantic search.

use std::path::PathBuf;
use std::time::Duration;

/// Options of a [`SemanticMemory`](super::SemanticMemory).
#[derive(Debug, Clone)]
pub struct SemanticMemoryOptions {
    /// Folder of the vector cache. Default: none, so that each process embeds all entries again;
    /// [`Memory::embeddings`](crate::Memory::embeddings) uses `embeddings` below the host's data folder, if it has
    /// one.
    pub folder: Option<PathBuf>,
    /// Maximum time that a search waits for the index and for the vector of its query. Default 1 second: a host
    /// gives its context sources 2.
    pub query_time_limit: Duration,
    /// Minimum similarity of a hit, from 0 to 1. Default 0.3, which suits most models. Some models place all texts
    /// close together: for the E5 family 0.75 is better.
    pub min_similarity: f32,
    /// Maximum length of an embedded text, in bytes; longer texts are truncated. Default 8 000, about 2 000 tokens;
    /// smaller models take 512.
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
