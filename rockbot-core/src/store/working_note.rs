//! Entries of working memory, on their way in and stored, and the error of working memory.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{StoreError, StorePath};
use crate::Timestamp;
use crate::chat::Provenance;
use crate::search::{Bm25Ranker, Ranked};

/// How long an entry is kept when nobody says otherwise.
pub const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// A text on its way into working memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingNote {
    /// Where to keep it.
    pub key: StorePath,
    /// The text.
    pub value: String,
    /// For how long: 5 minutes by default.
    pub ttl: Duration,
    /// What it is about.
    pub category: Option<StorePath>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Where it came from.
    pub provenance: Provenance,
}

impl WorkingNote {
    /// A text to be kept for 5 minutes.
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

    /// To be kept for `ttl`.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The entry that this becomes at `now`.
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

/// A text in working memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkingEntry {
    /// Where it is kept.
    pub key: StorePath,
    /// The text.
    pub value: String,
    /// Since when.
    #[serde(with = "crate::rfc3339")]
    pub stored_at: Timestamp,
    /// Until when: from this moment on it is gone.
    #[serde(with = "crate::rfc3339")]
    pub expires_at: Timestamp,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<StorePath>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Where it came from.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

impl WorkingEntry {
    /// The `limit` of `entries` that fit `query` best, the best first: for authors of stores. It reads all texts.
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

/// A working memory that refused, or cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkingMemoryError {
    /// A namespace would hold too many entries. Nothing was kept.
    #[error("working memory `{namespace}` holds its {limit} entries: delete some, or wait until they expire")]
    Full {
        /// The namespace.
        namespace: String,
        /// The most that it holds.
        limit: usize,
    },
    /// The texts of a namespace would be too long. Nothing was kept.
    #[error("working memory `{namespace}` holds at most {limit} bytes: delete some entries, or wait until they expire")]
    TooLarge {
        /// The namespace.
        namespace: String,
        /// The most bytes that it holds.
        limit: usize,
    },
    /// The memory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
