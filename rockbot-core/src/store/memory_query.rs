//! Queries of long-term memory.

use std::sync::Arc;

use super::StorePath;
use super::memory_entry::MemoryEntry;
use crate::Timestamp;
use crate::search::{Bm25Ranker, Ranked};

/// A query of a [`LongTermMemory`](super::LongTermMemory). The default matches the 20 newest
/// entries.
///
/// ```
/// use rockbot_core::store::MemoryQuery;
///
/// let query = MemoryQuery::new("garden gate").with_tags(vec!["work".into()]);
/// assert_eq!(query.limit, 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// Search words: entries with none of them are skipped, the best matches come first. Empty by
    /// default: the most recently learned or changed entries come first.
    pub text: String,
    /// Category, subcategories included.
    pub category: Option<StorePath>,
    /// Tags that an entry must all have, ignoring case.
    pub tags: Vec<String>,
    /// Earliest time of creation, inclusive.
    pub created_after: Option<Timestamp>,
    /// Latest time of creation, inclusive.
    pub created_before: Option<Timestamp>,
    /// Source of the text, such as `tool:web_browse`.
    pub source: Option<String>,
    /// `true` if archived and superseded entries match too. Default `false`.
    pub with_archived: bool,
    /// Maximum number of entries. Default 20.
    pub limit: usize,
}

impl Default for MemoryQuery {
    fn default() -> Self {
        Self {
            text: String::new(),
            category: None,
            tags: Vec::new(),
            created_after: None,
            created_before: None,
            source: None,
            with_archived: false,
            limit: 20,
        }
    }
}

impl MemoryQuery {
    /// Creates a query for the 20 entries that match `text` best.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Sets the category, subcategories included.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Option<StorePath>>) -> Self {
        self.category = category.into();
        self
    }

    /// Sets the tags that an entry must all have, ignoring case.
    #[must_use]
    pub fn with_tags(mut self, tags: Vec<String>) -> Self {
        self.tags = tags;
        self
    }

    /// Sets the earliest time of creation, inclusive.
    #[must_use]
    pub fn with_created_after(mut self, created_after: impl Into<Option<Timestamp>>) -> Self {
        self.created_after = created_after.into();
        self
    }

    /// Sets the latest time of creation, inclusive.
    #[must_use]
    pub fn with_created_before(mut self, created_before: impl Into<Option<Timestamp>>) -> Self {
        self.created_before = created_before.into();
        self
    }

    /// Sets the source of the text, such as `tool:web_browse`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets whether archived and superseded entries match too. Default `false`.
    #[must_use]
    pub fn with_archived(mut self, with_archived: bool) -> Self {
        self.with_archived = with_archived;
        self
    }

    /// Sets the maximum number of entries. Default 20.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns `true` if an entry passes all filters but the search words.
    pub fn admits(&self, entry: &MemoryEntry) -> bool {
        let has_tag = |tag: &String| entry.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase());
        let category = |wanted| entry.category.as_ref().is_some_and(|own| own.is_within(wanted));
        (self.with_archived || entry.is_live())
            && self.category.as_ref().is_none_or(category)
            && self.tags.iter().all(has_tag)
            && self.created_after.is_none_or(|after| entry.created_at >= after)
            && self.created_before.is_none_or(|before| entry.created_at <= before)
            && self
                .source
                .as_ref()
                .is_none_or(|source| entry.provenance.source == *source)
    }

    /// Returns the matches among all `entries`, reading each: for stores without an index.
    pub fn rank(&self, entries: impl IntoIterator<Item = Arc<MemoryEntry>>) -> Vec<Ranked<Arc<MemoryEntry>>> {
        let admitted = entries.into_iter().filter(|entry| self.admits(entry));
        if self.text.trim().is_empty() {
            return self.newest(admitted);
        }
        let mut found =
            Bm25Ranker::default().rank_with_scores(admitted, |entry| entry.searched_text().into(), &self.text);
        found.truncate(self.limit);
        found
    }

    /// Returns the newest of `entries`, newest first, each with a score of 1: the answer to a query
    /// without words.
    pub fn newest(&self, entries: impl IntoIterator<Item = Arc<MemoryEntry>>) -> Vec<Ranked<Arc<MemoryEntry>>> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        let moment = |entry: &Arc<MemoryEntry>| entry.updated_at.max(Some(entry.last_seen()));
        entries.sort_by(|a, b| moment(b).cmp(&moment(a)).then_with(|| a.id.cmp(&b.id)));
        entries.truncate(self.limit);
        entries.into_iter().map(|item| Ranked::new(item, 1.0)).collect()
    }
}
