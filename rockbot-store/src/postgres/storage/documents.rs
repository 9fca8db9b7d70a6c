//! A table of JSON documents, and what a process knows of it: the common part of long-term memory
//! and skills.
//!
//! The rows are the source of truth. The documents of a principal are read by the first search, and
//! kept with the index of their words. Each later search reads what has changed since.
//!
//! **The cursor** of changes is a number of transactions, not of rows: a row is marked with the
//! transaction that wrote it, and transactions may commit in another order than they began. All
//! transactions below the oldest transaction that still runs have ended, so the next search begins
//! there, and a row of a late commit is never skipped. Some rows are read twice instead.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use deadpool_postgres::Transaction;
use rockbot_core::Principal;
use rockbot_core::search::{Bm25Index, Ranked};
use rockbot_core::store::{StoreError, StoreErrorKind};
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::database::Database;
use super::error::{PostgresError, QueryError};
use super::row::{column, from_column, parse, parse_or_skip};
use crate::storage::blocking::{blocking, failed};
use crate::storage::documents::{Document, MAX_BYTES, Members, search_filtered};
use crate::storage::principal_cache::PrincipalCache;

/// Maximum number of rows that one statement reads.
const PAGE: i64 = 10_000;

/// Number of rows, and length of a query in bytes, above which the index works on a blocking thread.
const MANY_ROWS: usize = 100;
const LONG_QUERY: usize = 4 * 1024;

/// Time after which the documents of a principal are read anew. Deletions are remembered for twice
/// as long.
const MAX_AGE: Duration = Duration::from_secs(12 * 60 * 60);

/// The number of the oldest transaction that still runs.
macro_rules! oldest {
    () => {
        "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    };
}

/// A document with a text key. Its table is named by [`Document::WHAT`].
pub(in crate::postgres) trait DocumentRow: Document<Key: Borrow<str>> {}

impl<D: Document<Key: Borrow<str>>> DocumentRow for D {}

/// All documents of one type, with the documents of each principal in memory once they are searched.
#[derive(Debug)]
pub(in crate::postgres) struct Documents<D: DocumentRow> {
    database: Arc<Database>,
    known: PrincipalCache<Known<D>>,
}

/// The documents of one principal as this process knows them.
struct Known<D: DocumentRow> {
    /// Held while changes are read and applied.
    progress: tokio::sync::Mutex<Progress>,
    collection: RwLock<Collection<D>>,
}

/// The progress of reading the rows of a principal.
#[derive(Default)]
struct Progress {
    cursor: Option<Cursor>,
    /// The last failure, with the time when that read began.
    failure: Option<(Instant, QueryError)>,
}

/// The place up to which changes are known.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    transaction: i64,
    read_at: Instant,
}

/// A read of what has changed.
struct Reading<D: DocumentRow> {
    database: Arc<Database>,
    principal: String,
    known: Arc<Known<D>>,
}

/// Documents and the index of their words.
struct Collection<D: DocumentRow> {
    documents: BTreeMap<D::Key, Arc<D>>,
    index: Bm25Index<D::Key>,
}

impl<D: DocumentRow> Default for Known<D> {
    fn default() -> Self {
        Self {
            progress: tokio::sync::Mutex::default(),
            collection: RwLock::default(),
        }
    }
}

impl<D: DocumentRow> Default for Collection<D> {
    fn default() -> Self {
        Self {
            documents: BTreeMap::new(),
            index: Bm25Index::default(),
        }
    }
}

impl<D: DocumentRow> fmt::Debug for Known<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl<D: DocumentRow> Documents<D> {
    pub(in crate::postgres) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            known: PrincipalCache::default(),
        }
    }

    /// Returns the document `id`; a row that cannot be parsed is an error.
    pub(in crate::postgres) async fn get(&self, principal: &Principal, id: &str) -> Result<Option<Arc<D>>, StoreError> {
        let sql = format!("SELECT json FROM {} WHERE principal = $1 AND id = $2", D::WHAT);
        let rows = self
            .database
            .read(&sql, &[&column(principal.as_str()), &column(id)])
            .await?;
        let found = rows.first().map(|row| parse(D::WHAT, id, row.get(0)));
        found.transpose().map_err(|error| self.database.unreadable(error))
    }

    /// Deletes the document `id` and returns it; a row that cannot be parsed is deleted, too.
    pub(in crate::postgres) async fn delete(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<Option<Arc<D>>, StoreError> {
        let sql = format!(
            "WITH deleted AS (DELETE FROM {what} WHERE principal = $1 AND id = $2 RETURNING json),
                marked AS (INSERT INTO deleted_document (kind, principal, id) SELECT '{what}', $1, $2 FROM deleted
                    ON CONFLICT (kind, principal, id) DO UPDATE SET changed = DEFAULT, at = DEFAULT)
                SELECT json FROM deleted",
            what = D::WHAT
        );
        let (principal, key) = (column(principal.as_str()), column(id));
        let rows = self.database.query(&sql, &[&principal, &key]).await;
        let rows = rows.map_err(|error| self.database.unwritten(error))?;
        Ok(rows.first().and_then(|row| parse_or_skip(D::WHAT, id, row.get(0))))
    }

    /// Returns all documents in the order of their keys. Rows that cannot be parsed are left out with
    /// a warning.
    pub(in crate::postgres) async fn list(&self, principal: &Principal) -> Result<Vec<Arc<D>>, StoreError> {
        let known = self.current(principal).await?;
        let documents = known.read().documents.values().cloned().collect();
        Ok(documents)
    }

    /// Returns the `limit` best matches of the words of `query` among the documents that `admits`
    /// accepts.
    pub(in crate::postgres) async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
        admits: impl Fn(&D) -> bool + Send + 'static,
    ) -> Result<Vec<Ranked<Arc<D>>>, StoreError> {
        let known = self.current(principal).await?;
        if query.len() <= LONG_QUERY {
            return Ok(known.search(query, limit, admits));
        }
        let query = query.to_owned();
        blocking(move || Ok(known.search(&query, limit, admits))).await
    }

    /// Returns the documents of a principal as they are in the database now.
    async fn current(&self, principal: &Principal) -> Result<Arc<Known<D>>, StoreError> {
        let asked_at = Instant::now();
        let known = self.known.get_or_default(principal);
        let reading = Reading {
            database: self.database.clone(),
            principal: column(principal.as_str()).into_owned(),
            known: known.clone(),
        };
        // A task of its own: a caller that gives up leaves nothing half read, and the next caller finds
        // what was read meanwhile.
        let read = tokio::spawn(async move { reading.run(asked_at).await }).await;
        match read {
            Ok(Ok(())) => Ok(known),
            Ok(Err(error)) => Err(self.database.unreadable(error)),
            Err(error) => Err(failed("the database is not read while the runtime ends", error)),
        }
    }
}

impl<D: DocumentRow> Reading<D> {
    /// Reads what was committed before `asked_at`, unless another read has done so, or failed to.
    async fn run(self, asked_at: Instant) -> Result<(), QueryError> {
        let mut progress = self.known.progress.lock().await;
        if progress.cursor.is_some_and(|cursor| cursor.read_at >= asked_at) {
            return Ok(());
        }
        if let Some((_, error)) = progress.failure.as_ref().filter(|(begun, _)| *begun >= asked_at) {
            return Err(error.clone());
        }
        let begun = Instant::now();
        match self.read_on(&mut progress.cursor).await {
            Ok(()) => progress.failure = None,
            Err(error) => {
                progress.failure = Some((begun, error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn read_on(&self, cursor: &mut Option<Cursor>) -> Result<(), QueryError> {
        let is_fresh = |cursor: &Cursor| cursor.read_at.elapsed() < MAX_AGE;
        if let Some(before) = cursor.filter(is_fresh) {
            *cursor = self.read_changes(before).await?;
        } else {
            *cursor = None;
        }
        if cursor.is_none() {
            *cursor = Some(self.read_all().await?);
        }
        Ok(())
    }

    /// Reads all documents, in pages. Changes after the first page are in a later page, or are read
    /// by the next search.
    async fn read_all(&self) -> Result<Cursor, QueryError> {
        let what = D::WHAT;
        let page = |begin: &str| {
            format!("SELECT id, json FROM {what} WHERE principal = $1 AND id {begin} $2 ORDER BY id LIMIT $3")
        };
        let mut sql = page(">=");
        let read_at = Instant::now();
        let transaction = self.database.query(concat!("SELECT ", oldest!()), &[]).await?;
        let transaction = transaction.first().map_or(0, |row| row.get(0));
        *self.known.write() = Collection::default();
        let mut after = String::new();
        loop {
            let rows = self.database.query(&sql, &[&self.principal, &after, &PAGE]).await?;
            let is_last = rows.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            if let Some(last) = rows.last() {
                after = last.get(0);
            }
            self.known.clone().apply(rows).await?;
            if is_last {
                return Ok(Cursor { transaction, read_at });
            }
            sql = page(">");
        }
    }

    /// Reads the changes since `before`. Returns `None` if the server counts its transactions anew,
    /// since it is another one.
    async fn read_changes(&self, before: Cursor) -> Result<Option<Cursor>, QueryError> {
        // Deletions come first: a document may have been made anew.
        let sql = format!(
            concat!(
                "SELECT id, json, oldest FROM (
                    SELECT 0 AS step, NULL AS id, NULL AS json, ",
                oldest!(),
                " AS oldest
                    UNION ALL SELECT 1, id, NULL, 0 FROM deleted_document
                        WHERE kind = '{what}' AND principal = $1 AND changed >= $2
                    UNION ALL SELECT 2, id, json, 0 FROM {what} WHERE principal = $1 AND changed >= $2
                ) AS change ORDER BY step"
            ),
            what = D::WHAT
        );
        let read_at = Instant::now();
        let mut rows = self
            .database
            .query(&sql, &[&self.principal, &before.transaction])
            .await?;
        let transaction: i64 = rows.first().map_or(0, |row| row.get(2));
        if transaction < before.transaction {
            return Ok(None);
        }
        rows.remove(0);
        self.known.clone().apply(rows).await?;
        Ok(Some(Cursor { transaction, read_at }))
    }
}

impl<D: DocumentRow> Known<D> {
    fn read(&self) -> RwLockReadGuard<'_, Collection<D>> {
        self.collection.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Collection<D>> {
        self.collection.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn search(&self, query: &str, limit: usize, admits: impl Fn(&D) -> bool) -> Vec<Ranked<Arc<D>>> {
        let collection = self.read();
        let find = |key: &D::Key| {
            Ok(collection
                .documents
                .get::<str>(key.borrow())
                .filter(|document| admits(document))
                .cloned())
        };
        let found: Result<_, Infallible> = search_filtered(limit, |asked| collection.index.search(query, asked), find);
        found.unwrap_or_else(|never| match never {})
    }

    /// Applies rows of an id and its JSON, which is null for a document that was deleted.
    async fn apply(self: Arc<Self>, rows: Vec<Row>) -> Result<(), QueryError> {
        if rows.len() <= MANY_ROWS {
            self.apply_rows(&rows);
            return Ok(());
        }
        let applied = tokio::task::spawn_blocking(move || self.apply_rows(&rows)).await;
        applied.map_err(|error| {
            let (kind, text) = (StoreErrorKind::Closed, error.to_string());
            PostgresError::Server { kind, text }.into()
        })
    }

    fn apply_rows(&self, rows: &[Row]) {
        for row in rows {
            self.apply_row(row);
        }
    }

    fn apply_row(&self, row: &Row) {
        let id = from_column(row.get(0));
        let document = row
            .get::<_, Option<&str>>(1)
            .and_then(|json| parse_or_skip::<Arc<D>>(D::WHAT, &id, json));
        let mut collection = self.write();
        match document {
            Some(document) => collection.put(&document),
            None => collection.remove(&id),
        }
    }
}

impl<D: DocumentRow> Collection<D> {
    fn put(&mut self, document: &Arc<D>) {
        let key = document.key();
        let before = self.documents.insert(key.clone(), document.clone());
        // Rows may be read twice, and indexing is the expensive part.
        if before.is_some_and(|before| before == *document) {
            return;
        }
        match document.searched_text() {
            Some(text) => self.index.insert(key, &text),
            None => drop(self.index.remove::<str>(key.borrow())),
        }
    }

    fn remove(&mut self, id: &str) {
        if let Some(document) = self.documents.remove(id) {
            self.index.remove::<str>(document.key().borrow());
        }
    }
}

/// The rows of a principal within a transaction.
pub(in crate::postgres) struct Rows<'a> {
    pub(in crate::postgres) change: &'a Transaction<'a>,
    pub(in crate::postgres) principal: &'a str,
}

impl<'a> Rows<'a> {
    pub(in crate::postgres) fn new(change: &'a Transaction<'a>, principal: &'a str) -> Self {
        Self { change, principal }
    }

    /// Returns the document `id`, which no other transaction changes until the end of this one. A row
    /// that cannot be parsed is an error, so that it is not overwritten.
    pub(in crate::postgres) async fn locked<D: DocumentRow>(&self, id: &str) -> Result<Option<Locked<D>>, QueryError> {
        let sql = format!(
            "SELECT json FROM {} WHERE principal = $1 AND id = $2 FOR UPDATE",
            D::WHAT
        );
        let statement = self.change.prepare_cached(&sql).await?;
        let row = self
            .change
            .query_opt(&statement, &[&self.principal, &column(id)])
            .await?;
        row.map(|row| Locked::parse(id, row.get(0))).transpose()
    }

    /// Writes a document with the unknown members of the row that it replaces.
    pub(in crate::postgres) async fn put<D: DocumentRow>(
        &self,
        document: &D,
        before: Option<Locked<D>>,
    ) -> Result<(), QueryError> {
        let key = document.key();
        let id: &str = key.borrow();
        let other = before.map(|before| before.other).unwrap_or_default();
        let json = serde_json::to_string(&Members {
            document,
            other: &other,
        })?;
        if json.len() > MAX_BYTES {
            let (what, id, len, limit) = (D::WHAT, id.to_owned(), json.len(), MAX_BYTES);
            return Err(PostgresError::TooLarge { what, id, len, limit }.into());
        }
        let sql = format!(
            "INSERT INTO {} (principal, id, json) VALUES ($1, $2, $3)
                ON CONFLICT (principal, id) DO UPDATE SET json = excluded.json, changed = DEFAULT",
            D::WHAT
        );
        let statement = self.change.prepare_cached(&sql).await?;
        self.change
            .execute(&statement, &[&self.principal, &column(id), &json])
            .await?;
        Ok(())
    }
}

/// A document of a row that is locked, and the members that its type does not have.
pub(in crate::postgres) struct Locked<D> {
    pub(in crate::postgres) document: D,
    other: Map<String, Value>,
}

impl<D: DocumentRow> Locked<D> {
    fn parse(id: &str, json: &str) -> Result<Self, QueryError> {
        let document = parse(D::WHAT, id, json)?;
        let mut other: Map<String, Value> = parse(D::WHAT, id, json)?;
        other.retain(|name, _| !D::MEMBERS.contains(&name.as_str()));
        Ok(Self { document, other })
    }
}

/// Forgets deletions that every process has read, or reads anew.
pub(in crate::postgres) async fn forget_deletions(database: &Database) -> Result<(), StoreError> {
    let sql = "DELETE FROM deleted_document WHERE at < now() - interval '1 day'";
    database.write(sql, &[]).await.map(drop)
}
