//! The generic store of dated entries in a database: [`SqliteTimeline`].

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::storage::row::{number, parse_or_skip, to_json};
use super::storage::{Database, QueryError};
use crate::storage::timeline::StoredEntry;

/// Maximum number of rows that a purge handles in one write, so that other writers do not starve.
const BATCH: usize = 1_000;

/// A store of dated entries in a table of a [`SqliteMemory`](super::SqliteMemory); used as
/// [`SqliteFeedbackStore`](super::SqliteFeedbackStore) and
/// [`SqliteSkillUsageStore`](super::SqliteSkillUsageStore).
#[derive(Debug)]
pub struct SqliteTimeline<E> {
    database: Arc<Database>,
    entries: PhantomData<fn() -> E>,
}

impl<E: StoredEntry> SqliteTimeline<E> {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            entries: PhantomData,
        }
    }
}

#[async_trait]
impl<E: StoredEntry> TimelineStore<E> for SqliteTimeline<E> {
    async fn append(&self, principal: &Principal, entry: E) -> Result<(), StoreError> {
        let sql = format!("INSERT INTO {} (principal, at, json) VALUES (?1, ?2, ?3)", E::TABLE);
        let principal = principal.clone();
        let at = entry.timestamp();
        let work = move |connection: &Connection| {
            let row = (principal.as_str(), number(at.as_millis()), to_json(&entry)?);
            connection.execute(&sql, row)?;
            Ok(())
        };
        self.database.write(work).await
    }

    async fn purge(&self, before: Timestamp, max: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        let work = move |connection: &Connection| kept_since(connection, E::TABLE, before, max);
        for (principal, since) in self.database.read(work).await? {
            let mut rows = PurgeBatch {
                table: E::TABLE,
                principal,
                since,
                after: i64::MIN,
            };
            loop {
                let work = move |connection: &Connection| rows.purge::<E>(connection);
                let (purged, next) = self.database.write(work).await?;
                gone += purged;
                let Some(next) = next else { break };
                rows = next;
            }
        }
        Ok(gone)
    }

    async fn query_recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<E>, StoreError> {
        let table = E::TABLE;
        let principal = principal.clone();
        let sql = format!(
            "SELECT number, json FROM {table} WHERE principal = ?1 AND at >= ?2 ORDER BY at DESC, number DESC LIMIT ?3"
        );
        let work = move |connection: &Connection| {
            let mut statement = connection.prepare(&sql)?;
            let wanted = (principal.as_str(), number(since.as_millis()), number(limit));
            let rows = statement.query_map(wanted, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
            let entries = rows.iter().rev();
            let entries = entries.filter_map(|(number, json)| parse_or_skip(table, &number.to_string(), json));
            Ok::<_, QueryError>(entries.collect())
        };
        self.database.read(work).await
    }
}

/// Returns each principal with the time of its oldest entry that stays.
fn kept_since(
    connection: &Connection,
    table: &str,
    before: Timestamp,
    max_entries: usize,
) -> Result<Vec<(String, i64)>, QueryError> {
    let before = number(before.as_millis());
    let mut owners = connection.prepare(&format!("SELECT DISTINCT principal FROM {table}"))?;
    let mut oldest = connection.prepare(&format!(
        "SELECT at FROM {table} WHERE principal = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2"
    ))?;
    let owners: Vec<String> = owners.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    let since = owners.into_iter().map(|owner| {
        if max_entries == 0 {
            return Ok((owner, i64::MAX));
        }
        let wanted = (&owner, number(max_entries - 1));
        let oldest: Option<i64> = oldest.query_row(wanted, |row| row.get(0)).optional()?;
        Ok((owner, oldest.map_or(before, |oldest| before.max(oldest))))
    });
    since.collect()
}

/// The rows of a principal that are to be purged; the rows up to the number `after` have been
/// visited.
struct PurgeBatch {
    table: &'static str,
    principal: String,
    since: i64,
    after: i64,
}

impl PurgeBatch {
    /// Removes one batch, and returns the number of removed rows and the rows that are left to visit.
    fn purge<T: StoredEntry>(mut self, connection: &Connection) -> Result<(u64, Option<Self>), QueryError> {
        let table = self.table;
        let mut old = connection.prepare(&format!(
            "SELECT number, json FROM {table} WHERE principal = ?1 AND at < ?2 AND number > ?3 ORDER BY number LIMIT ?4"
        ))?;
        let wanted = (&self.principal, self.since, self.after, number(BATCH));
        let rows = old.query_map(wanted, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
        let mut delete = connection.prepare(&format!("DELETE FROM {table} WHERE number = ?1"))?;
        let mut gone = 0;
        for (number, json) in &rows {
            self.after = *number;
            if serde_json::from_str::<T>(json).is_ok() {
                gone += delete.execute((number,))? as u64;
            }
        }
        Ok((gone, (rows.len() == BATCH).then_some(self)))
    }
}
