//! The documents of one principal in memory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use rockbot_core::search::{Bm25Index, Ranked};

use super::document::Document;
use super::filtered_search::search_filtered;
use super::stored_document::{FileVersion, StoredDocument};

/// The documents of one principal, by file, and the current document of each key.
///
/// Kept consistent by [`put`](Self::put) and [`remove`](Self::remove), which also update the word
/// index; nothing here does I/O.
#[derive(Debug)]
pub(crate) struct Collection<D: Document> {
    by_file: BTreeMap<String, StoredDocument<D>>,
    /// The copies of each key, in list order.
    copies: BTreeMap<D::Key, Copies<D>>,
    /// The current document of each key.
    documents: HashMap<D::Key, Arc<D>>,
    index: Bm25Index<D::Key>,
    /// Files that the last rescan could not read, with the version that it saw.
    pub(super) suspects: BTreeMap<String, FileVersion>,
}

/// The files that have one key.
#[derive(Debug)]
struct Copies<D> {
    /// The files, the current one last.
    files: Vec<String>,
    /// The document of the current file, here too: a list needs no lookup for each.
    current: Option<Arc<D>>,
}

impl<D> Default for Copies<D> {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            current: None,
        }
    }
}

impl<D: Document> Default for Collection<D> {
    fn default() -> Self {
        Self {
            by_file: BTreeMap::new(),
            copies: BTreeMap::new(),
            documents: HashMap::new(),
            index: Bm25Index::default(),
            suspects: BTreeMap::new(),
        }
    }
}

impl<D: Document> Collection<D> {
    /// Returns the current document of `key`.
    pub(crate) fn get(&self, key: &D::Key) -> Option<&Arc<D>> {
        self.documents.get(key)
    }

    /// Iterates over the current documents in the order of their keys.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Arc<D>> {
        self.copies.values().filter_map(|copies| copies.current.as_ref())
    }

    /// Returns the `limit` best matches of the words of `query` among the documents that `admits`
    /// accepts.
    pub(crate) fn search(&self, query: &str, limit: usize, admits: impl Fn(&D) -> bool) -> Vec<Ranked<Arc<D>>> {
        let find = |key: &D::Key| Ok(self.get(key).filter(|document| admits(document)).cloned());
        let found: Result<_, Infallible> = search_filtered(limit, |asked| self.index.search(query, asked), find);
        found.unwrap_or_else(|never| match never {})
    }

    /// Returns the current document of `key` as its file has it.
    pub(super) fn stored(&self, key: &D::Key) -> Option<&StoredDocument<D>> {
        self.by_file.get(self.file_of(key)?)
    }

    /// Returns the name of the current file of `key`.
    pub(super) fn file_of(&self, key: &D::Key) -> Option<&str> {
        self.copies.get(key)?.files.last().map(String::as_str)
    }

    /// Returns the names of all files of `key`, the current one last.
    pub(super) fn files_of(&self, key: &D::Key) -> Vec<String> {
        self.copies
            .get(key)
            .map(|copies| copies.files.clone())
            .unwrap_or_default()
    }

    /// Returns the number of files, current or not.
    pub(super) fn file_count(&self) -> usize {
        self.by_file.len()
    }

    /// Iterates over all files, current or not.
    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &StoredDocument<D>)> {
        self.by_file.iter()
    }

    /// Returns the document in `file`.
    pub(super) fn in_file(&self, file: &str) -> Option<&StoredDocument<D>> {
        self.by_file.get(file)
    }

    /// Inserts the document of `file`, in place of the document that was read from it before.
    pub(super) fn put(&mut self, file: &str, stored: StoredDocument<D>) {
        let key = stored.document.key();
        // An edit may have changed the key: the old key must not keep a file that no longer has it.
        if self.in_file(file).is_some_and(|known| known.document.key() != key) {
            self.remove(file);
        }
        self.by_file.insert(file.to_owned(), stored);
        let files = &mut self.copies.entry(key.clone()).or_default().files;
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
        self.select_current(&key);
    }

    /// Removes the document of `file`; the next older copy, if any, becomes current.
    pub(super) fn remove(&mut self, file: &str) {
        let Some(stored) = self.by_file.remove(file) else {
            return;
        };
        let key = stored.document.key();
        if let Some(copies) = self.copies.get_mut(&key) {
            copies.files.retain(|known| known != file);
            self.select_current(&key);
        }
    }

    /// Selects the current file of `key`, and updates the documents and the index accordingly.
    fn select_current(&mut self, key: &D::Key) {
        let by_file = &self.by_file;
        let now = self
            .copies
            .get_mut(key)
            .and_then(|copies| copies.select_current(by_file));
        let before = match &now {
            Some(document) => self.documents.insert(key.clone(), document.clone()),
            None => {
                self.copies.remove(key);
                self.documents.remove(key)
            }
        };
        // Indexing is the expensive part; a rescan after a mere touch of the file skips it.
        if now == before {
            return;
        }
        match now.and_then(|document| document.searched_text()) {
            Some(text) => self.index.insert(key.clone(), &text),
            None => drop(self.index.remove(key)),
        }
    }
}

impl<D: Document> Copies<D> {
    /// Selects the newest copy and returns it; `None` if there is none.
    fn select_current(&mut self, by_file: &BTreeMap<String, StoredDocument<D>>) -> Option<Arc<D>> {
        self.files
            .sort_by_cached_key(|file| (by_file.get(file).map(StoredDocument::age), file.clone()));
        let stored = self.files.last().and_then(|file| by_file.get(file));
        self.current = stored.map(|stored| stored.document.clone());
        self.current.clone()
    }
}
