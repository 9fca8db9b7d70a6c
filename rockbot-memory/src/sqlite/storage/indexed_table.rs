//! IndexedTable in rows, and the index of their words: what long-term memory and skills have in common.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rockbot_core::Principal;
use rockbot_core::search::{Bm25Index, Ranked};
use rockbot_core::store::StoreError;
use rusqlite::Connection;

use super::database::Database;
use super::error::SqliteError;
use super::table::{DocumentRow, Table};
use crate::storage::documents::search_filtered;
use crate::storage::principal_cache::PrincipalCache;

/// All documents of one kind.
#[derive(Debug)]
pub(in crate::sqlite) struct IndexedTable<D: DocumentRow> {
    database: Arc<Database>,
    indexes: PrincipalCache<WordIndex<D>>,
}

/// The words of one principal's documents, once somebody has searched for some.
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

/// What a write changes in the index: the words of a document, or that there are none any more.
type IndexChange<D> = (<D as crate::storage::documents::Document>::Key, Option<String>);

/// A table that notes what changes.
pub(in crate::sqlite) struct IndexedWrite<'a, D: DocumentRow> {
    pub(in crate::sqlite) table: Table<'a, D>,
    changes: RefCell<Vec<IndexChange<D>>>,
}

impl<D: DocumentRow> IndexedWrite<'_, D> {
    pub(in crate::sqlite) fn put(&self, document: &D) -> Result<(), SqliteError> {
        self.table.put(document)?;
        self.changes
            .borrow_mut()
            .push((document.key(), document.searched_text()));
        Ok(())
    }

    pub(in crate::sqlite) fn delete(&self, key: &D::Key) -> Result<Option<Arc<D>>, SqliteError> {
        self.changes.borrow_mut().push((key.clone(), None));
        self.table.delete(key.borrow())
    }
}

impl<D: DocumentRow> IndexedTable<D> {
    pub(in crate::sqlite) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            indexes: PrincipalCache::default(),
        }
    }

    pub(in crate::sqlite) async fn read<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&Table<'_, D>) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| work(&Table::new(connection, &principal));
        self.database.read(work).await
    }

    /// Runs `work`, and keeps the index at what it wrote.
    pub(in crate::sqlite) async fn write<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&IndexedWrite<'_, D>) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (index, principal) = (self.indexes.get_or_default(principal), principal.clone());
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

    /// The `limit` best of the documents that have a word of `query` and are admitted.
    pub(in crate::sqlite) async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
        admits: impl Fn(&D) -> bool + Send + 'static,
    ) -> Result<Vec<Ranked<Arc<D>>>, StoreError> {
        let (index, query) = (self.indexes.get_or_default(principal), query.to_owned());
        if index.0.get().is_none() {
            self.load(principal, index.clone()).await?;
        }
        let work = move |table: &Table<'_, D>| {
            // A document may have gone or changed since the index was asked.
            let find = |key: &D::Key| Ok(table.get(key.borrow())?.filter(|document| admits(document)));
            search_filtered(limit, |asked| index.search(&query, asked), find)
        };
        self.read(principal, work).await
    }

    /// Fills the index. Nothing is written meanwhile, so that nothing is missed.
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
        // When two have filled it, the first one has seen what was written since.
        let then = move |words| drop(index.0.set(RwLock::new(words)));
        self.database.write_then(work, then).await
    }
}

impl<D: DocumentRow> WordIndex<D> {
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked<D::Key>> {
        let words = self.0.get().expect("an index that was filled stays");
        words
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .search(query, limit)
    }

    /// Takes in what was written, unless nobody has searched yet.
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
