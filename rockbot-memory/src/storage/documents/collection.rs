//! The documents of one principal in memory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::search::{Bm25Index, Ranked};

use super::document::Document;
use super::filtered_search::search_filtered;
use super::stored_document::{FileVersion, StoredDocument};

/// How long nobody looks for changes after somebody did, at least.
const MIN_RESCAN_INTERVAL: Duration = Duration::from_secs(2);

/// How much longer than a look took nobody looks again.
const RESCAN_COST_FACTOR: u32 = 20;

/// The stored of one principal, by file, and which of them counts for each key.
#[derive(Debug)]
pub(crate) struct Collection<D: Document> {
    stored: BTreeMap<String, StoredDocument<D>>,
    /// The files of each key; the last one counts.
    files: BTreeMap<D::Key, Vec<String>>,
    /// The document of each key that counts.
    documents: HashMap<D::Key, Arc<D>>,
    index: Bm25Index<D::Key>,
    /// Files that could not be read at the last look, as they were then.
    pub(super) suspects: BTreeMap<String, FileVersion>,
    /// When somebody scanned, and for how long that is enough.
    scanned: Option<(Timestamp, Duration)>,
}

impl<D: Document> Default for Collection<D> {
    fn default() -> Self {
        Self {
            stored: BTreeMap::new(),
            files: BTreeMap::new(),
            documents: HashMap::new(),
            index: Bm25Index::default(),
            suspects: BTreeMap::new(),
            scanned: None,
        }
    }
}

impl<D: Document> Collection<D> {
    pub(crate) fn get(&self, key: &D::Key) -> Option<&Arc<D>> {
        self.documents.get(key)
    }

    /// All documents, in the order of their keys.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Arc<D>> {
        self.files.keys().filter_map(|key| self.get(key))
    }

    /// The `limit` best of the documents that have a word of `query` and are admitted.
    pub(crate) fn search(&self, query: &str, limit: usize, admits: impl Fn(&D) -> bool) -> Vec<Ranked<Arc<D>>> {
        let find = |key: &D::Key| Ok(self.get(key).filter(|document| admits(document)).cloned());
        let found: Result<_, Infallible> = search_filtered(limit, |asked| self.index.search(query, asked), find);
        found.unwrap_or_else(|never| match never {})
    }

    pub(super) fn stored(&self, key: &D::Key) -> Option<&StoredDocument<D>> {
        self.stored.get(self.file_of(key)?)
    }

    /// The file that counts.
    pub(super) fn file_of(&self, key: &D::Key) -> Option<&str> {
        self.files.get(key)?.last().map(String::as_str)
    }

    /// All files with this key, the one that counts last.
    pub(super) fn files_of(&self, key: &D::Key) -> Vec<String> {
        self.files.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &StoredDocument<D>)> {
        self.stored.iter()
    }

    pub(super) fn in_file(&self, file: &str) -> Option<&StoredDocument<D>> {
        self.stored.get(file)
    }

    pub(super) fn put(&mut self, file: &str, stored: StoredDocument<D>) {
        let key = stored.document.key();
        if self.in_file(file).is_some_and(|known| known.document.key() != key) {
            self.remove(file);
        }
        self.stored.insert(file.to_owned(), stored);
        let files = self.files.entry(key.clone()).or_default();
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
        self.select_current(&key);
    }

    pub(super) fn remove(&mut self, file: &str) {
        let Some(stored) = self.stored.remove(file) else { return };
        let key = stored.document.key();
        if let Some(files) = self.files.get_mut(&key) {
            files.retain(|known| known != file);
            self.select_current(&key);
        }
    }

    /// Finds out which file counts, and keeps the documents and the index at it.
    fn select_current(&mut self, key: &D::Key) {
        let stored = &self.stored;
        match self.files.get_mut(key) {
            Some(files) if !files.is_empty() => {
                files.sort_by_cached_key(|file| (stored.get(file).map(StoredDocument::age), file.clone()));
            }
            _ => drop(self.files.remove(key)),
        }
        let now = self.stored(key).map(|stored| stored.document.clone());
        let before = match &now {
            Some(document) => self.documents.insert(key.clone(), document.clone()),
            None => self.documents.remove(key),
        };
        if now == before {
            return;
        }
        match now.and_then(|document| document.searched_text()) {
            Some(text) => self.index.insert(key.clone(), &text),
            None => drop(self.index.remove(key)),
        }
    }

    /// Whether nobody has scanned for changes yet.
    pub(super) fn is_unscanned(&self) -> bool {
        self.scanned.is_none()
    }

    /// Whether somebody should look for changes.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        // When the clock was set back, nobody knows how long ago it was.
        self.scanned
            .is_none_or(|(at, pause)| now < at || now.since(at) >= pause)
    }

    pub(super) fn mark_scanned(&mut self, at: Timestamp, took: Duration) {
        self.scanned = Some((at, MIN_RESCAN_INTERVAL.max(took * RESCAN_COST_FACTOR)));
    }
}
