//! Long-term memory in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::search::Ranked;
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery, Remembered, StoreError, remembered};
use rockbot_core::{MemoryId, Principal, Timestamp};
use rusqlite::Connection;

use super::storage::Database;
use super::storage::QueryError;
use super::storage::Table;
use super::storage::row::parse_or_skip;
use super::storage::{IndexedTable, IndexedWrite};
use crate::storage::documents::wording;

/// Maximum number of memories that a purge removes in one write, so that other writers do not
/// starve.
const BATCH: usize = 100;

/// The [`LongTermMemory`] of a [`SqliteMemory`](super::SqliteMemory).
///
/// The word index of a principal is built at the first search. The indexes of at most 256
/// principals are cached. A memory has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct SqliteLongTermMemory {
    entries: IndexedTable<MemoryEntry>,
    database: Arc<Database>,
}

impl SqliteLongTermMemory {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            entries: IndexedTable::new(database.clone()),
            database,
        }
    }
}

#[async_trait]
impl LongTermMemory for SqliteLongTermMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let id = id.clone();
        self.entries
            .read(principal, move |entries| entries.get(id.as_str()))
            .await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        self.entries.write(principal, move |entries| put(entries, &entry)).await
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        let work = move |entries: &IndexedWrite<'_, MemoryEntry>| {
            let remembered = remembered(&same_wording(&entries.table, &entry)?, entry);
            put(entries, remembered.entry())?;
            Ok(remembered)
        };
        self.entries.write(principal, work).await
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        let before = before.clone();
        let work = move |entries: &IndexedWrite<'_, MemoryEntry>| {
            let known = entries.table.get(after.id.as_str())?;
            let is_there = known.is_some_and(|known| *known == before);
            if is_there {
                put(entries, &after)?;
            }
            Ok(is_there)
        };
        self.entries.write(principal, work).await
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let id = id.clone();
        self.entries.write(principal, move |entries| entries.delete(&id)).await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let work = move |connection: &Connection| archived(connection, before);
        let found = self.database.read(work).await?;
        let mut gone = 0;
        for some in found.chunks(BATCH) {
            let some = some.to_vec();
            let work = move |connection: &Connection| purge(connection, &some, before);
            gone += self.database.write(work).await?;
        }
        Ok(gone)
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.entries.read(principal, |entries| entries.list()).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        if query.text.trim().is_empty() || query.with_archived {
            // The word index has live memories only, and nothing to rank without words.
            return Ok(query.rank(self.list(principal).await?));
        }
        let wanted = query.clone();
        let admits = move |entry: &MemoryEntry| wanted.admits(entry);
        self.entries.search(principal, &query.text, query.limit, admits).await
    }
}

/// Returns the memories that were archived before `before`, with their principals.
fn archived(connection: &Connection, before: Timestamp) -> Result<Vec<(Principal, MemoryId)>, QueryError> {
    let mut statement = connection.prepare("SELECT principal, json FROM memory WHERE wording IS NULL")?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (principal, json): (String, String) = row?;
        let entry = serde_json::from_str::<MemoryEntry>(&json).ok();
        let entry = entry.filter(|entry| entry.was_archived_before(before));
        found.extend(entry.map(|entry| (principal.into(), entry.id)));
    }
    Ok(found)
}

/// Removes the memories of `some` that are still archived: a caller may have restored a memory
/// since they were listed. No word index has archived memories, so none is to be updated.
fn purge(connection: &Connection, some: &[(Principal, MemoryId)], before: Timestamp) -> Result<u64, QueryError> {
    let mut gone = 0;
    for (principal, id) in some {
        let table = Table::<MemoryEntry>::new(connection, principal);
        let entry = table.get(id.as_str())?;
        if entry.is_some_and(|entry| entry.was_archived_before(before)) {
            table.delete(id.as_str())?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// Writes a memory together with the digest of its wording; the digest finds a repetition of the
/// same fact.
fn put(entries: &IndexedWrite<'_, MemoryEntry>, entry: &MemoryEntry) -> Result<(), QueryError> {
    entries.put(entry)?;
    let table = &entries.table;
    let wording = entry.is_live().then(|| wording(entry));
    let sql = "UPDATE memory SET wording = ?3 WHERE principal = ?1 AND id = ?2";
    let row = (table.principal.as_str(), entry.id.as_str(), wording);
    table.connection.execute(sql, row)?;
    Ok(())
}

/// Returns the live memories with the same wording as `entry`, in the order of their ids.
fn same_wording(table: &Table<'_, MemoryEntry>, entry: &MemoryEntry) -> Result<Vec<Arc<MemoryEntry>>, QueryError> {
    let sql = "SELECT id, json FROM memory WHERE principal = ?1 AND wording = ?2 ORDER BY id";
    let mut statement = table.connection.prepare(sql)?;
    let rows = statement.query_map((table.principal.as_str(), wording(entry)), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
    let entries = rows.iter().filter_map(|(id, json)| parse_or_skip("memory", id, json));
    Ok(entries.collect())
}
