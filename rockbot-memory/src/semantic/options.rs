//! Options of semantic search.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::store::VectorCache;

/// Options of a [`SemanticMemory`](super::SemanticMemory).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SemanticMemoryOptions {
    /// Folder of the vector cache. Default: none, so that each process embeds all entries again;
    /// [`Memory::embeddings`](crate::Memory::embeddings) uses `embeddings` below the host's data
    /// folder, if it has one.
    pub folder: Option<PathBuf>,
    /// Vector cache, which takes precedence over a folder. Default: none;
    /// [`Memory::embeddings`](crate::Memory::embeddings) uses the cache of the host's database, if it
    /// has one and no folder is set, so that each entry is embedded in one process for all.
    pub cache: Option<Arc<dyn VectorCache>>,
    /// Maximum time that a search waits for the index and for the vector of its query. Default 1
    /// second: a host gives its context sources 2.
    pub query_time_limit: Duration,
    /// Minimum similarity of a hit, from 0 to 1. Default 0.3, which suits most models. Some models
    /// place all texts close together: for the E5 family 0.75 is better.
    pub min_similarity: f32,
    /// Minimum similarity, from 0 to 1, of an entry that counts as the same text in other words: a
    /// model that saves the text is told of the entry. Default 0.85. Some models place all texts
    /// close together: for the E5 family 0.95 is better.
    pub duplicate_similarity: f32,
    /// Maximum length of an embedded text, in bytes; longer texts are truncated. Default 8 000, about
    /// 2 000 tokens; smaller models take 512.
    pub max_text: usize,
}

impl Default for SemanticMemoryOptions {
    fn default() -> Self {
        Self {
            folder: None,
            cache: None,
            query_time_limit: Duration::from_secs(1),
            min_similarity: 0.3,
            duplicate_similarity: 0.85,
            max_text: 8_000,
        }
    }
}

impl SemanticMemoryOptions {
    /// Sets the folder of the vector cache. Default: none, so that each process embeds all entries
    /// again; [`Memory::embeddings`](crate::Memory::embeddings) uses `embeddings` below the host's
    /// data folder, if it has one.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the vector cache, which takes precedence over a folder. Default: none;
    /// [`Memory::embeddings`](crate::Memory::embeddings) uses the cache of the host's database, if it
    /// has one and no folder is set.
    #[must_use]
    pub fn with_cache(mut self, cache: impl VectorCache) -> Self {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// Sets the maximum time that a search waits for the index and for the vector of its query.
    /// Default 1 second: a host gives its context sources 2.
    #[must_use]
    pub fn with_query_time_limit(mut self, query_time_limit: Duration) -> Self {
        self.query_time_limit = query_time_limit;
        self
    }

    /// Sets the minimum similarity of a hit, from 0 to 1. Default 0.3, which suits most models.
    #[must_use]
    pub fn with_min_similarity(mut self, min_similarity: f32) -> Self {
        self.min_similarity = min_similarity;
        self
    }

    /// Sets the minimum similarity, from 0 to 1, of an entry that counts as the same text in other
    /// words. Default 0.85.
    #[must_use]
    pub fn with_duplicate_similarity(mut self, duplicate_similarity: f32) -> Self {
        self.duplicate_similarity = duplicate_similarity;
        self
    }

    /// Sets the maximum length of an embedded text, in bytes; longer texts are truncated. Default 8
    /// 000, about 2 000 tokens; smaller models take 512.
    #[must_use]
    pub fn with_max_text(mut self, max_text: usize) -> Self {
        self.max_text = max_text;
        self
    }
}
