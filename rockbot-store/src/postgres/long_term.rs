//! Long-term memory in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::search::Ranked;
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery, Remembered, StoreError, remembered};
use rockbot_core::{MemoryId, Principal, Timestamp};

use super::storage::row::{column, parse_or_skip};
use super::storage::{Database, Documents, QueryError, Rows, forget_deletions, statements};
use crate::storage::documents::wording;

/// Maximum number of memories that a purge handles in one statement, so that it holds no lock for
/// long.
const BATCH: i64 = 1_000;

/// The first number of the advisory locks of wordings: `rkbw`. Two numbers are apart from the one of
/// the migrations.
const WORDING_LOCK: i32 = 0x726b_6277;

statements! {
    LOCK_WORDING = "SELECT pg_advisory_xact_lock($1, ('x' || left($2, 8))::bit(32)::int)";
    SET_WORDING = "UPDATE memory SET wording = $3 WHERE principal = $1 AND id = $2";
    SAME_WORDING = "SELECT id, json FROM memory WHERE principal = $1 AND wording = $2 ORDER BY id FOR UPDATE";
    FIRST_ARCHIVED = "SELECT principal, id, json FROM memory WHERE wording IS NULL ORDER BY principal, id LIMIT $1";
    NEXT_ARCHIVED = "SELECT principal, id, json FROM memory WHERE wording IS NULL AND (principal, id) > ($2, $3)
        ORDER BY principal, id LIMIT $1";
    /// A memory that was restored or edited since it was read has another text, and stays.
    PURGE = "WITH deleted AS (DELETE FROM memory USING unnest($1::text[], $2::text[], $3::text[]) AS old (principal, id, json)
            WHERE memory.principal = old.principal AND memory.id = old.id AND memory.json = old.json
            RETURNING memory.principal, memory.id)
        INSERT INTO deleted_document (kind, principal, id) SELECT 'memory', principal, id FROM deleted
            ON CONFLICT (kind, principal, id) DO UPDATE SET changed = DEFAULT, at = DEFAULT";
}

/// The [`LongTermMemory`] of a [`Postgres`](super::Postgres).
///
/// The memories of a principal are read by the first search of a process, and kept with the index of
/// their words, for 256 principals at most. Each later search reads what any process has changed
/// since, so it finds all that was written before. A memory has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct PostgresLongTermMemory {
    entries: Documents<MemoryEntry>,
    database: Arc<Database>,
}

impl PostgresLongTermMemory {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            entries: Documents::new(database.clone()),
            database,
        }
    }

    async fn try_save(&self, principal: &str, entry: &MemoryEntry) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        put(&Rows::new(&change, principal), entry).await?;
        change.commit().await?;
        Ok(())
    }

    /// Stores an entry, or reinforces the live entry that says the same. Another call with the same
    /// words waits until the end of this one.
    async fn try_remember(&self, principal: &str, entry: MemoryEntry) -> Result<Remembered, QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let wording = wording(&entry);
        let lock = change.prepare_cached(LOCK_WORDING).await?;
        change.query(&lock, &[&WORDING_LOCK, &wording]).await?;
        let same = change.prepare_cached(SAME_WORDING).await?;
        let same = change.query(&same, &[&principal, &wording]).await?;
        let known: Vec<_> = same
            .iter()
            .filter_map(|row| parse_or_skip("memory", row.get(0), row.get(1)))
            .collect();
        let remembered = remembered(&known, entry);
        put(&Rows::new(&change, principal), remembered.entry()).await?;
        change.commit().await?;
        Ok(remembered)
    }

    async fn try_replace(
        &self,
        principal: &str,
        before: &MemoryEntry,
        after: &MemoryEntry,
    ) -> Result<bool, QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let rows = Rows::new(&change, principal);
        let known = rows.locked::<MemoryEntry>(after.id.as_str()).await?;
        let is_there = known.is_some_and(|known| known.document == *before);
        if is_there {
            put(&rows, after).await?;
            change.commit().await?;
        }
        Ok(is_there)
    }
}

#[async_trait]
impl LongTermMemory for PostgresLongTermMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.entries.get(principal, id.as_str()).await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        let saved = self.try_save(&column(principal.as_str()), &entry).await;
        saved.map_err(|error| self.database.unwritten(error))
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        let remembered = self.try_remember(&column(principal.as_str()), entry).await;
        remembered.map_err(|error| self.database.unwritten(error))
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        let replaced = self.try_replace(&column(principal.as_str()), before, &after).await;
        replaced.map_err(|error| self.database.unwritten(error))
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.entries.delete(principal, id.as_str()).await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut gone = 0;
        let mut rows = self.database.read(FIRST_ARCHIVED, &[&BATCH]).await?;
        while let Some(last) = rows.last() {
            let (principal, id): (String, String) = (last.get(0), last.get(1));
            let is_old = |json: &str| {
                let entry = serde_json::from_str::<MemoryEntry>(json).ok();
                entry.is_some_and(|entry| entry.was_archived_before(before))
            };
            let old: Vec<_> = rows.iter().filter(|row| is_old(row.get(2))).collect();
            let texts = |place: usize| old.iter().map(|row| row.get(place)).collect::<Vec<&str>>();
            gone += self.database.write(PURGE, &[&texts(0), &texts(1), &texts(2)]).await?;
            rows = self.database.read(NEXT_ARCHIVED, &[&BATCH, &principal, &id]).await?;
        }
        forget_deletions(&self.database).await?;
        Ok(gone)
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.entries.list(principal).await
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

/// Writes a memory together with the digest of its wording; the digest finds a repetition of the
/// same fact.
async fn put(rows: &Rows<'_>, entry: &MemoryEntry) -> Result<(), QueryError> {
    let before = rows.locked(entry.id.as_str()).await?;
    rows.put(entry, before).await?;
    let wording = entry.is_live().then(|| wording(entry));
    let set = rows.change.prepare_cached(SET_WORDING).await?;
    rows.change
        .execute(&set, &[&rows.principal, &column(entry.id.as_str()), &wording])
        .await?;
    Ok(())
}
