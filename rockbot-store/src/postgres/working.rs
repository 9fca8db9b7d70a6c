//! Working memory in a database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use rockbot_core::store::{StorePath, WorkingEntry, WorkingLimits, WorkingMemory, WorkingMemoryError, WorkingNote};
use rockbot_core::{Clock, Principal, Timestamp};

use super::storage::row::{column, number, parse, parse_or_skip};
use super::storage::{Database, QueryError, now, statements};

/// Number of puts between two removals of expired entries, the first put included.
const PURGE_EVERY: u64 = 64;

statements! {
    GET = "SELECT json FROM working WHERE principal = $1 AND key = $2 AND expires_at > ", now!("$3");
    DELETE = "DELETE FROM working WHERE principal = $1 AND key = $2 AND expires_at > ", now!("$3");
    /// All keys below `a` sort between `a/` and `a0`, since `0` follows `/`, so the primary key serves
    /// as the index.
    LIST = "SELECT key, json FROM working WHERE principal = $1 AND expires_at > ", now!("$2"), "
        AND ($3::text IS NULL OR key = $3 OR (key > $3 || '/' AND key < $3 || '0')) ORDER BY key";
    NOW = "SELECT ", now!("$1");
    PURGE = "DELETE FROM working WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM working WHERE expires_at <= ", now!("$1"), " LIMIT 1000 FOR UPDATE SKIP LOCKED))";
    UNLOCK = "DELETE FROM working_namespace_lock WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM working_namespace_lock AS lock WHERE NOT EXISTS (
            SELECT FROM working WHERE working.principal = lock.principal AND working.namespace = lock.namespace)
        LIMIT 1000 FOR UPDATE SKIP LOCKED))";
    LOCK = "INSERT INTO working_namespace_lock (principal, namespace) VALUES ($1, $2)
        ON CONFLICT (principal, namespace) DO UPDATE SET namespace = excluded.namespace";
    LENGTHS = "SELECT key, bytes FROM working WHERE principal = $1 AND namespace = $2 AND expires_at > $3";
    PUT = "INSERT INTO working (principal, key, namespace, bytes, expires_at, json) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (principal, key) DO UPDATE SET bytes = excluded.bytes, expires_at = excluded.expires_at,
            json = excluded.json";
}

/// The [`WorkingMemory`] of a [`Postgres`](super::Postgres).
///
/// Time to live is measured by the clock of the database; expired entries are deleted by later
/// writes.
#[derive(Debug)]
pub struct PostgresWorkingMemory {
    database: Arc<Database>,
    limits: WorkingLimits,
    /// The clock of tests; the database's own without it.
    clock: Option<Arc<dyn Clock>>,
    puts: AtomicU64,
}

impl PostgresWorkingMemory {
    pub(super) fn new(database: Arc<Database>, limits: WorkingLimits, clock: Option<Arc<dyn Clock>>) -> Self {
        Self {
            database,
            limits,
            clock,
            puts: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| number(clock.now().as_millis()))
    }

    /// Removes entries that have expired, once in a while and before the transaction of a put, which
    /// would hold the locks of the removal for longer.
    async fn purge(&self) -> Result<(), QueryError> {
        if self.puts.fetch_add(1, Ordering::Relaxed).is_multiple_of(PURGE_EVERY) {
            self.database.query(PURGE, &[&self.now()]).await?;
            self.database.query(UNLOCK, &[]).await?;
        }
        Ok(())
    }

    /// Writes all of `notes`, or none if one of their namespaces is full.
    async fn add(
        &self,
        principal: &str,
        notes: Vec<WorkingNote>,
    ) -> Result<Result<(), WorkingMemoryError>, QueryError> {
        self.purge().await?;
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let now = change.prepare_cached(NOW).await?;
        let now: i64 = change.query_one(&now, &[&self.now()]).await?.get(0);
        let mut touched: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for note in &notes {
            let entries = touched.entry(note.key.namespace().to_owned()).or_default();
            entries.insert(note.key.as_str().to_owned(), note.value.len());
        }
        // In the order of their names, so that two writers cannot wait for each other.
        for (namespace, new) in touched {
            let mut entries = lengths(&change, principal, &namespace, now).await?;
            entries.extend(new);
            if let Some(refused) = refusal(&namespace, &entries, self.limits) {
                return Ok(Err(refused));
            }
        }
        let put = change.prepare_cached(PUT).await?;
        let now = Timestamp::from_millis(u64::try_from(now).unwrap_or_default());
        for entry in notes.into_iter().map(|note| note.stored_at(now)) {
            let (key, namespace) = (entry.key.as_str(), entry.key.namespace());
            let (bytes, expires_at) = (number(entry.value.len()), number(entry.expires_at.as_millis()));
            let json = serde_json::to_string(&entry)?;
            change
                .execute(&put, &[&principal, &key, &namespace, &bytes, &expires_at, &json])
                .await?;
        }
        change.commit().await?;
        Ok(Ok(()))
    }
}

#[async_trait]
impl WorkingMemory for PostgresWorkingMemory {
    async fn put(&self, principal: &Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError> {
        let added = self.add(&column(principal.as_str()), notes).await;
        added.map_err(|error| self.database.unwritten(error))?
    }

    async fn get(
        &self,
        principal: &Principal,
        key: &StorePath,
    ) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError> {
        let rows = self
            .database
            .read(GET, &[&column(principal.as_str()), &key.as_str(), &self.now()])
            .await?;
        let found = rows.first().map(|row| parse("note", key.as_str(), row.get(0)));
        Ok(found.transpose().map_err(|error| self.database.unreadable(error))?)
    }

    async fn delete(&self, principal: &Principal, key: &StorePath) -> Result<bool, WorkingMemoryError> {
        let deleted = self
            .database
            .write(DELETE, &[&column(principal.as_str()), &key.as_str(), &self.now()])
            .await?;
        Ok(deleted > 0)
    }

    async fn list(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
    ) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError> {
        let prefix = prefix.map(StorePath::as_str);
        let rows = self
            .database
            .read(LIST, &[&column(principal.as_str()), &self.now(), &prefix])
            .await?;
        let entries = rows
            .iter()
            .filter_map(|row| parse_or_skip("note", row.get(0), row.get(1)));
        Ok(entries.collect())
    }
}

/// Makes other puts into the namespace wait until the end of the transaction, and returns its keys
/// with the sizes of their texts in bytes.
async fn lengths(
    change: &Transaction<'_>,
    principal: &str,
    namespace: &str,
    now: i64,
) -> Result<BTreeMap<String, usize>, QueryError> {
    let lock = change.prepare_cached(LOCK).await?;
    change.execute(&lock, &[&principal, &namespace]).await?;
    let lengths = change.prepare_cached(LENGTHS).await?;
    let rows = change.query(&lengths, &[&principal, &namespace, &now]).await?;
    let size = |bytes: i64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(rows.iter().map(|row| (row.get(0), size(row.get(1)))).collect())
}

/// Returns the error of a namespace that cannot hold these entries, or `None` if it can.
fn refusal(namespace: &str, entries: &BTreeMap<String, usize>, limits: WorkingLimits) -> Option<WorkingMemoryError> {
    let namespace = namespace.to_owned();
    let bytes = entries.values().fold(0, |bytes: usize, len| bytes.saturating_add(*len));
    if entries.len() > limits.entries {
        let limit = limits.entries;
        return Some(WorkingMemoryError::Full { namespace, limit });
    }
    let limit = limits.bytes;
    (bytes > limit).then_some(WorkingMemoryError::TooLarge { namespace, limit })
}
