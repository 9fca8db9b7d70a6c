//! A table of JSON documents and the index of their words: the common part of long-term memory
//! and skills.
//!
//! The rows are the source of truth. The word index of a principal is built at the first search,
//! and updated after each commit, on the writer thread, so that it follows the commits in order
//! and never shows a change that was rolled back.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rockbot_core::Principal;
use rockbot_core::search::{Bm25Index, Ranked};
use rockbot_core::store::StoreError;
use rusqlite::Connection;

use super::database::Database;
use super::error::QueryError;
use super::table::{DocumentRow, Table};
use crate::storage::documents::search_filtered;
use crate::storage::principal_cache::PrincipalCache;

/// All documents of one type, with a cached word index for each principal.
#[derive(Debug)]
pub(in crate::sqlite) struct IndexedTable<D: DocumentRow> {
    database: Arc<Database>,
    indexes: PrincipalCache<WordIndex<D>>,
}

/// The word index of one principal; empty until the first search.
struct WordIndex<D: DocumentRow>(OnceLock<RwLock<Bm25Index<D::Key>>>);

impl<D: DocumentRow> Default for WordIndex<D> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<D: DocumentRow> fmt::Debug for WordIndex<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordIndex").finish_non_exhaustive()
    }
}

/// A change of the index: a key with its new text, or `None` to remove it.
type IndexChange<D> = (<D as crate::storage::documents::Document>::Key, Option<String>);

/// A write in progress: the table, and the index changes to apply after the commit.
pub(in crate::sqlite) struct IndexedWrite<'a, D: DocumentRow> {
    pub(in crate::sqlite) table: Table<'a, D>,
    changes: RefCell<Vec<IndexChange<D>>>,
}

impl<D: DocumentRow> IndexedWrite<'_, D> {
    /// Writes a document.
    pub(in crate::sqlite) fn put(&self, document: &D) -> Result<(), QueryError> {
        self.table.put(document)?;
        self.changes
            .borrow_mut()
            .push((document.key(), document.searched_text()));
        Ok(())
    }

    /// Deletes a document and returns it.
    pub(in crate::sqlite) fn delete(&self, key: &D::Key) -> Result<Option<Arc<D>>, QueryError> {
        self.changes.borrow_mut().push((key.clone(), None));
        self.table.delete(key.borrow())
    }
}

impl<D: DocumentRow> IndexedTable<D> {
    /// Creates the view of the table of `D` in `database`.
    pub(in crate::sqlite) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            indexes: PrincipalCache::default(),
        }
    }

    /// Runs `work` on the table of `principal`, on a read snapshot.
    pub(in crate::sqlite) async fn read<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&Table<'_, D>) -> Result<R, QueryError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| work(&Table::new(connection, &principal));
        self.database.read(work).await
    }

    /// Runs `work` in a write, and applies its changes to the index after the commit.
    pub(in crate::sqlite) async fn write<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&IndexedWrite<'_, D>) -> Result<R, QueryError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let index = self.indexes.get_or_default(principal);
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let writing = IndexedWrite {
                table: Table::new(connection, &principal),
                changes: RefCell::default(),
            };
            let result = work(&writing)?;
            Ok((result, writing.changes.into_inner()))
        };
        let then = move |(result, changes)| {
            index.apply(changes);
            result
        };
        self.database.write_then(work, then).await
    }

    /// Returns the `limit` best matches of the words of `query` among the documents that `admits`
    /// accepts.
    pub(in crate::sqlite) async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
        admits: impl Fn(&D) -> bool + Send + 'static,
    ) -> Result<Vec<Ranked<Arc<D>>>, StoreError> {
        let index = self.indexes.get_or_default(principal);
        let query = query.to_owned();
        if index.0.get().is_none() {
            self.load(principal, index.clone()).await?;
        }
        let work = move |table: &Table<'_, D>| {
            // The index and the snapshot are not of the same moment: a document may be gone or changed.
            let find = |key: &D::Key| Ok(table.get(key.borrow())?.filter(|document| admits(document)));
            search_filtered(limit, |asked| index.search(&query, asked), find)
        };
        self.read(principal, work).await
    }

    /// Builds the index on the writer thread: no write can fall between reading the rows and
    /// publishing the index.
    async fn load(&self, principal: &Principal, index: Arc<WordIndex<D>>) -> Result<(), StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let mut words = Bm25Index::default();
            for document in Table::<D>::new(connection, &principal).list()? {
                if let Some(text) = document.searched_text() {
                    words.insert(document.key(), &text);
                }
            }
            Ok(words)
        };
        // Of two concurrent builds the first build wins: it has received the changes since, and the
        // second build has not.
        let then = move |words| drop(index.0.set(RwLock::new(words)));
        self.database.write_then(work, then).await
    }
}

impl<D: DocumentRow> WordIndex<D> {
    /// Returns the `limit` best keys.
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked<D::Key>> {
        let words = self.0.get().expect("an index that was filled stays");
        words
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .search(query, limit)
    }

    /// Applies committed changes; a no-op until the index is built.
    fn apply(&self, changes: Vec<IndexChange<D>>) {
        let Some(words) = self.0.get() else { return };
        let mut words = words.write().unwrap_or_else(PoisonError::into_inner);
        for (key, text) in changes {
            match text {
                Some(text) => words.insert(key, &text),
                None => drop(words.remove::<D::Key>(&key)),
            }
        }
    }
}
