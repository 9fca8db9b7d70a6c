//! Working memory in a database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use rockbot_core::search::Ranked;
use rockbot_core::store::{StorePath, WorkingEntry, WorkingLimits, WorkingMemory, WorkingMemoryError, WorkingNote};
use rockbot_core::{Clock, Principal, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::storage::Database;
use super::storage::QueryError;
use super::storage::row::{number, parse, parse_or_skip, to_json};

/// The [`WorkingMemory`] of a [`SqliteMemory`](super::SqliteMemory).
///
/// Time to live counts while the process is down, too; expired entries are deleted by the next
/// write. Against clock skew the time never goes back: after the clock was set back, it stands
/// still until the old time is reached.
#[derive(Debug)]
pub struct SqliteWorkingMemory {
    database: Arc<Database>,
    limits: WorkingLimits,
    clock: Arc<dyn Clock>,
    /// The latest time that was read from the clock, in milliseconds.
    latest: AtomicU64,
}

impl SqliteWorkingMemory {
    pub(super) fn new(database: Arc<Database>, limits: WorkingLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            database,
            limits,
            clock,
            latest: AtomicU64::new(0),
        }
    }

    /// Returns the current time, which never goes back.
    fn now(&self) -> Timestamp {
        let now = self.clock.now().as_millis();
        // Relaxed: the maximum is the only shared state, and no other memory depends on its order.
        Timestamp::from_millis(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

#[async_trait]
impl WorkingMemory for SqliteWorkingMemory {
    async fn put(&self, principal: &Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError> {
        let principal = principal.clone();
        let limits = self.limits;
        let now = self.now();
        let work = move |connection: &Connection| {
            let sql = "DELETE FROM working WHERE expires_at <= ?1";
            connection.execute(sql, (number(now.as_millis()),))?;
            let room = check_room(connection, &principal, limits, &notes)?;
            if room.is_ok() {
                let entries = notes.into_iter().map(|note| note.stored_at(now));
                for entry in entries {
                    put(connection, &principal, &entry)?;
                }
            }
            Ok(room)
        };
        self.database.write(work).await?
    }

    async fn get(
        &self,
        principal: &Principal,
        key: &StorePath,
    ) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError> {
        let principal = principal.clone();
        let key = key.clone();
        let now = self.now();
        let work = move |connection: &Connection| {
            let sql = "SELECT json FROM working WHERE principal = ?1 AND key = ?2 AND expires_at > ?3";
            let wanted = (principal.as_str(), key.as_str(), number(now.as_millis()));
            let json: Option<String> = connection.query_row(sql, wanted, |row| row.get(0)).optional()?;
            json.map(|json| parse("note", key.as_str(), &json)).transpose()
        };
        Ok(self.database.read(work).await?)
    }

    async fn delete(&self, principal: &Principal, key: &StorePath) -> Result<bool, WorkingMemoryError> {
        let principal = principal.clone();
        let key = key.clone();
        let now = self.now();
        let work = move |connection: &Connection| {
            let sql = "DELETE FROM working WHERE principal = ?1 AND key = ?2 AND expires_at > ?3";
            let wanted = (principal.as_str(), key.as_str(), number(now.as_millis()));
            Ok(connection.execute(sql, wanted)? > 0)
        };
        Ok(self.database.write(work).await?)
    }

    async fn list(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
    ) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError> {
        let principal = principal.clone();
        let prefix = prefix.cloned();
        let now = self.now();
        let work = move |connection: &Connection| list(connection, &principal, prefix.as_ref(), now);
        Ok(self.database.read(work).await?)
    }

    async fn search(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<WorkingEntry>>>, WorkingMemoryError> {
        let principal = principal.clone();
        let prefix = prefix.cloned();
        let now = self.now();
        let query = query.to_owned();
        let work = move |connection: &Connection| {
            let entries = list(connection, &principal, prefix.as_ref(), now)?;
            Ok(WorkingEntry::best(entries, &query, limit))
        };
        Ok(self.database.read(work).await?)
    }
}

/// Returns the entries at or below `prefix`. All keys below `a` sort between `a/` and `a0`, since
/// `0` follows `/`, so the primary key serves as the index.
fn list(
    connection: &Connection,
    principal: &Principal,
    prefix: Option<&StorePath>,
    now: Timestamp,
) -> Result<Vec<Arc<WorkingEntry>>, QueryError> {
    let sql = "SELECT key, json FROM working WHERE principal = ?1 AND expires_at > ?2
        AND (?3 IS NULL OR key = ?3 OR (key > ?3 || '/' AND key < ?3 || '0')) ORDER BY key";
    let mut statement = connection.prepare(sql)?;
    let wanted = (
        principal.as_str(),
        number(now.as_millis()),
        prefix.map(StorePath::as_str),
    );
    let rows = statement.query_map(wanted, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
    let entries = rows.iter().filter_map(|(key, json)| parse_or_skip("note", key, json));
    Ok(entries.collect())
}

/// Inserts or replaces an entry.
fn put(connection: &Connection, principal: &Principal, entry: &WorkingEntry) -> Result<(), QueryError> {
    let sql = "INSERT OR REPLACE INTO working (principal, key, namespace, bytes, expires_at, json)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = (
        principal.as_str(),
        entry.key.as_str(),
        entry.key.namespace(),
        number(entry.value.len()),
        number(entry.expires_at.as_millis()),
        to_json(entry)?,
    );
    connection.execute(sql, row)?;
    Ok(())
}

/// Checks that all of `notes` fit into their namespaces: a put is all or nothing.
fn check_room(
    connection: &Connection,
    principal: &Principal,
    limits: WorkingLimits,
    notes: &[WorkingNote],
) -> Result<Result<(), WorkingMemoryError>, QueryError> {
    let mut touched: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for note in notes {
        let namespace = note.key.namespace();
        if !touched.contains_key(namespace) {
            touched.insert(namespace, lengths(connection, principal, namespace)?);
        }
        let entries = touched.entry(namespace).or_default();
        entries.insert(note.key.as_str().to_owned(), note.value.len());
    }
    let mut refused = touched
        .iter()
        .filter_map(|(namespace, entries)| refusal(namespace, entries, limits));
    Ok(refused.next().map_or(Ok(()), Err))
}

/// Returns the keys of a namespace with the sizes of their texts in bytes.
fn lengths(
    connection: &Connection,
    principal: &Principal,
    namespace: &str,
) -> Result<BTreeMap<String, usize>, QueryError> {
    let sql = "SELECT key, bytes FROM working WHERE principal = ?1 AND namespace = ?2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((principal.as_str(), namespace), |row| {
        Ok((
            row.get(0)?,
            usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX),
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
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
