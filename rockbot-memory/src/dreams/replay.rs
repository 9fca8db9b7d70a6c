//! The replay of stored queries before a plan is applied: the plan must not make facts that
//! matter unfindable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::search::{Bm25Index, UnicodeAnalyzer};
use rockbot_core::store::MemoryEntry;
use rockbot_core::{MemoryId, Timestamp};

use super::plan::DreamChange;

/// Number of hits that are compared.
const TOP: usize = 10;

/// Maximum number of superseded memories whose own text is a query.
const MAX_OWN: usize = 100;

/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 300;

/// Minimum importance of a protected memory.
const PROTECTED_IMPORTANCE: f64 = 0.8;

/// Minimum number of times that a protected memory was learned.
const PROTECTED_COUNT: u32 = 5;

/// Time for which a memory that was learned counts as in use.
const RECENT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Returns `true` for a memory that a dream may merge but never lose: it is important, or was
/// learned often.
pub(super) fn is_protected(entry: &MemoryEntry) -> bool {
    entry.importance_score >= PROTECTED_IMPORTANCE || entry.reinforcement_count >= PROTECTED_COUNT
}

/// The queries of a principal, against two states of memory.
pub(super) struct Replay<'a> {
    pub(super) entries: &'a [Arc<MemoryEntry>],
    pub(super) changes: &'a [DreamChange],
    /// Messages of the user, as recall asks for them.
    pub(super) queries: &'a [String],
    pub(super) now: Timestamp,
}

impl Replay<'_> {
    /// Returns the memories that queries find before the changes and not after them, each with the
    /// query.
    ///
    /// A memory counts as found if the memory that takes its place is found. For the user's queries
    /// only protected memories and memories learned within 14 days count; a memory that is
    /// superseded is looked for by its own text in any case.
    pub(super) fn losses(&self) -> Vec<String> {
        let successors = self.successors();
        if successors.is_empty() {
            return Vec::new();
        }
        let by_id: BTreeMap<_, _> = self.entries.iter().map(|entry| (&entry.id, entry)).collect();
        let own: Vec<_> = successors.keys().filter_map(|id| by_id.get(*id)).collect();
        let step = own.len().div_ceil(MAX_OWN).max(1);
        let own_queries = own
            .iter()
            .step_by(step)
            .map(|entry| (entry.content.clone(), Some(&entry.id)));
        let users = self.queries.iter().map(|query| (query.clone(), None));
        let before = self.index(false);
        let after = self.index(true);
        let mut losses = Vec::new();
        for (query, wanted) in own_queries.chain(users) {
            let query: String = query.chars().take(MAX_QUERY).collect();
            let found: BTreeSet<_> = after.search(&query, TOP).into_iter().map(|hit| hit.item).collect();
            for hit in before.search(&query, TOP) {
                let is_found =
                    found.contains(&hit.item) || successors.get(&hit.item).is_some_and(|by| found.contains(*by));
                let counts = wanted == Some(&hit.item) || by_id.get(&hit.item).is_some_and(|entry| self.matters(entry));
                if counts && !is_found {
                    losses.push(format!("`{}` would no longer be found by \"{query}\"", hit.item));
                }
            }
        }
        losses
    }

    fn matters(&self, entry: &MemoryEntry) -> bool {
        is_protected(entry) || self.now.since(entry.last_seen()) <= RECENT
    }

    fn successors(&self) -> BTreeMap<&MemoryId, &MemoryId> {
        let superseded = self.changes.iter().filter_map(|change| match change {
            DreamChange::Supersede { id, by, .. } => Some((id, by)),
            _ => None,
        });
        superseded.collect()
    }

    /// Returns an index of the live memories, before or after the changes.
    fn index(&self, is_after: bool) -> Bm25Index<MemoryId> {
        let mut index = Bm25Index::new(Arc::new(UnicodeAnalyzer));
        for entry in self.entries.iter().filter(|entry| entry.is_live()) {
            index.insert(entry.id.clone(), &entry.searched_text());
        }
        for change in self.changes.iter().filter(|_| is_after) {
            match change {
                DreamChange::AddMemory { entry, .. } => index.insert(entry.id.clone(), &entry.searched_text()),
                DreamChange::Supersede { id, .. } => drop(index.remove(id)),
                _ => {}
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::Provenance;

    use super::*;

    fn entry(id: &str, content: &str) -> MemoryEntry {
        MemoryEntry::new(id, content, Timestamp::default(), Provenance::USER)
    }

    fn supersede(entry: &MemoryEntry, by: &str) -> DreamChange {
        DreamChange::Supersede {
            id: entry.id.clone(),
            content: entry.content.clone(),
            by: by.into(),
            reason: String::new(),
        }
    }

    #[track_caller]
    fn check(merged: &str, expected: &[&str]) {
        let sources = [entry("a", "Miso likes tuna."), entry("b", "Miso sleeps on the sofa.")];
        let changes = [
            DreamChange::AddMemory {
                entry: Box::new(entry("v", merged)),
                reason: String::new(),
            },
            supersede(&sources[0], "v"),
            supersede(&sources[1], "v"),
        ];
        let entries: Vec<_> = sources.into_iter().map(Arc::new).collect();
        let replay = Replay {
            entries: &entries,
            changes: &changes,
            queries: &["Where does the cat sleep?".to_owned()],
            now: Timestamp::default(),
        };
        assert_eq!(replay.losses(), expected);
    }

    #[test]
    fn a_merged_text_must_be_found_by_what_it_replaces() {
        check("Miso likes tuna and sleeps on the sofa.", &[]);
        check(
            "The cat likes fish.",
            &[
                "`b` would no longer be found by \"Miso sleeps on the sofa.\"",
                "`a` would no longer be found by \"Miso sleeps on the sofa.\"",
            ],
        );
    }
}
