//! What is asked of long-term memory.

use std::sync::Arc;

use super::StorePath;
use super::memory_entry::MemoryEntry;
use crate::Timestamp;
use crate::search::{Bm25Ranker, Ranked};

/// Which entries of a [`LongTermMemory`](super::LongTermMemory) somebody is looking for: by default the 20 newest.
///
/// ```
/// use rockbot_core::store::MemoryQuery;
///
/// let query = MemoryQuery {
///     tags: vec!["work".into()],
///     ..MemoryQuery::new("garden gate")
/// };
/// assert_eq!(query.limit, 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Words that an entry should have: those that have none of them are left out, and those that fit best come first.
    /// Empty by default: then those that were learned or changed last come first.
    pub text: String,
    /// Entries of this category and those below it.
    pub category: Option<StorePath>,
    /// Tags that an entry must all have, whatever their case.
    pub tags: Vec<String>,
    /// Entries that were created then or later.
    pub created_after: Option<Timestamp>,
    /// Entries that were created then or earlier.
    pub created_before: Option<Timestamp>,
    /// Entries whose text came from there, such as `tool:web_browse`.
    pub source: Option<String>,
    /// Whether entries are found that are not live: archived ones, and those whose place another took. Default `false`.
    pub with_archived: bool,
    /// How many entries at most. Default 20.
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
    /// The 20 entries that fit `text` best.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Whether an entry has everything that is asked for but the words.
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

    /// Answers the query from all `entries`, by reading each: for stores without an index.
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

    /// The newest of `entries`, the newest first, each with a score of 1: what a query without words asks for.
    pub fn newest(&self, entries: impl IntoIterator<Item = Arc<MemoryEntry>>) -> Vec<Ranked<Arc<MemoryEntry>>> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        let moment = |entry: &Arc<MemoryEntry>| entry.updated_at.max(Some(entry.last_seen()));
        entries.sort_by(|a, b| moment(b).cmp(&moment(a)).then_with(|| a.id.cmp(&b.id)));
        entries.truncate(self.limit);
        entries.into_iter().map(|item| Ranked { item, score: 1.0 }).collect()
    }
}
