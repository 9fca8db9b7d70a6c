//! The form of a long result in the host, where its tool knows better than the host.
//!
//! A tool says how its long results are kept (`ResultChunks`): a page has chunks of 4 000
//! characters under its URL, through the host's own chunker. A chunker of the tool's own would
//! need the working memory, and know neither labels nor limits of models.

use std::sync::Arc;
use std::time::Duration;

/// The form of a result that is too long for the conversation. The host keeps it in chunks of
/// working memory, and the model reads the chunks that it needs.
///
/// A host has a policy for all results. A tool whose results are documents of their own, such as
/// web pages, states another policy with each result: smaller chunks, kept for longer, under a
/// descriptive name.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::tool::{ResultChunks, ToolInvokeResponse};
///
/// let chunks = ResultChunks::new("web-example.org").with_threshold(8_000).with_max_len(4_000);
/// let page = ToolInvokeResponse::new("c1", "web_browse", "# Example").with_chunks(chunks.with_ttl(Duration::from_secs(1_800)));
/// assert_eq!(page.chunks().map(|chunks| chunks.max_len), Some(4_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultChunks {
    /// The name of the result: its chunks have the keys `{namespace}/{key}-chunk{n}`, its outline
    /// `{namespace}/{key}-index`. Results with the same name replace each other.
    pub key: Arc<str>,
    /// Maximum number of characters of a result that stays in the conversation. Default 8 000; a
    /// lower limit of the host or of the model counts instead.
    pub threshold: usize,
    /// Maximum number of characters of a chunk. Default 4 000.
    pub max_len: usize,
    /// Time to live of the chunks. Default 30 minutes.
    pub ttl: Duration,
}

impl ResultChunks {
    /// Creates the form of a result of this name.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            threshold: 8_000,
            max_len: 4_000,
            ttl: Duration::from_secs(30 * 60),
        }
    }

    /// Sets the maximum number of characters of a result that stays in the conversation. Default 8 000.
    #[must_use]
    pub fn with_threshold(mut self, threshold: usize) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets the maximum number of characters of a chunk. Default 4 000.
    #[must_use]
    pub fn with_max_len(mut self, max_len: usize) -> Self {
        self.max_len = max_len;
        self
    }

    /// Sets the time to live of the chunks. Default 30 minutes.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}
