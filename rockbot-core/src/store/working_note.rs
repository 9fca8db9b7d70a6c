//! Entries of working memory, on their way in and stored, and the error of working memory.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{StoreError, StorePath};
use crate::Timestamp;
use crate::chat::Provenance;
use crate::search::{Bm25Ranker, Ranked};

/// Default TTL of an entry: 5 minutes.
pub const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// A text to be stored in working memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkingNote {
    /// Path of the entry.
    pub key: StorePath,
    /// Text of the entry.
    pub value: String,
    /// Time to live. Default 5 minutes.
    pub ttl: Duration,
    /// Category of the text.
    pub category: Option<StorePath>,
    /// Tags, which searches match too.
    pub tags: Vec<String>,
    /// Provenance of the text.
    pub provenance: Provenance,
}

impl WorkingNote {
    /// Creates a text with a TTL of 5 minutes.
    pub fn new(key: StorePath, value: impl Into<String>, provenance: Provenance) -> Self {
        Self {
            key,
            value: value.into(),
            ttl: DEFAULT_TTL,
            category: None,
            tags: Vec::new(),
            provenance,
        }
    }

    /// Sets the category of the text.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Option<StorePath>>) -> Self {
        self.category = category.into();
        self
    }

    /// Sets the tags, which searches match too.
    #[must_use]
    pub fn with_tags(mut self, tags: Vec<String>) -> Self {
        self.tags = tags;
        self
    }

    /// Sets the time to live.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Returns the entry that results from storing the note at `now`.
    pub fn stored_at(self, now: Timestamp) -> WorkingEntry {
        WorkingEntry {
            key: self.key,
            value: self.value,
            stored_at: now,
            expires_at: now.after(self.ttl),
            category: self.category,
            tags: self.tags,
            provenance: self.provenance,
        }
    }
}

/// A stored text of working memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkingEntry {
    /// Path of the entry.
    pub key: StorePath,
    /// Text of the entry.
    pub value: String,
    /// Time of storing.
    #[serde(with = "crate::rfc3339")]
    pub stored_at: Timestamp,
    /// Time of expiry; from this moment on the entry is gone.
    #[serde(with = "crate::rfc3339")]
    pub expires_at: Timestamp,
    /// Category of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<StorePath>,
    /// Tags, which searches match too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Provenance of the text.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

impl WorkingEntry {
    /// Returns the `limit` of `entries` that match `query` best, best first: for implementers of
    /// stores. Reads all texts.
    pub fn best(entries: Vec<Arc<Self>>, query: &str, limit: usize) -> Vec<Ranked<Arc<Self>>> {
        let mut found = Bm25Ranker::default().rank_with_scores(entries, |entry| entry.searched_text().into(), query);
        found.truncate(limit);
        found
    }

    fn searched_text(&self) -> String {
        let category = self.category.as_ref().map_or("", StorePath::as_str);
        [self.key.as_str(), &self.value, &self.tags.join("\n"), category].join("\n")
    }
}

/// The error of a [`WorkingMemory`](super::WorkingMemory).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkingMemoryError {
    /// A namespace would exceed its quota of entries. Nothing was stored.
    #[error("working memory `{namespace}` holds its {limit} entries: delete some, or wait until they expire")]
    Full {
        /// Name of the namespace.
        namespace: String,
        /// Maximum number of entries.
        limit: usize,
    },
    /// A namespace would exceed its quota of bytes. Nothing was stored.
    #[error("working memory `{namespace}` holds at most {limit} bytes: delete some entries, or wait until they expire")]
    TooLarge {
        /// Name of the namespace.
        namespace: String,
        /// Maximum size, in bytes.
        limit: usize,
    },
    /// The underlying store failed; decide by [`StoreError::kind`].
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WorkingMemoryError {
    /// Returns `true` if the same call may succeed when it is repeated at once. A full namespace
    /// stays full until entries are deleted or expire.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Store(error) if error.retry_helps())
    }
}
