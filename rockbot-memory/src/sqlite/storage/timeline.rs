//! A table of dated entries that are only ever added: what feedback and uses of skills have in common.

use std::sync::Arc;

use rockbot_core::store::StoreError;
use rockbot_core::{Principal, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::database::Database;
use super::error::SqliteError;
use super::row::{number, parse_or_skip, to_json};

/// How many rows go before somebody else may write.
const BATCH: usize = 1_000;

#[derive(Debug)]
pub(in crate::sqlite) struct Timeline {
    database: Arc<Database>,
    table: &'static str,
}

impl Timeline {
    pub(in crate::sqlite) fn new(database: Arc<Database>, table: &'static str) -> Self {
        Self { database, table }
    }

    pub(in crate::sqlite) async fn append(
        &self,
        principal: &Principal,
        at: Timestamp,
        entry: impl Serialize + Send + 'static,
    ) -> Result<(), StoreError> {
        let sql = format!("INSERT INTO {} (principal, at, json) VALUES (?1, ?2, ?3)", self.table);
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let row = (principal.as_str(), number(at.as_millis()), to_json(&entry)?);
            connection.execute(&sql, row)?;
            Ok(())
        };
        self.database.write(work).await
    }

    /// Removes, for all principals, what is older than `before` or than the newest `most` entries of its principal, as far
    /// as it can be read as a `T`.
    pub(in crate::sqlite) async fn purge<T: DeserializeOwned>(
        &self,
        before: Timestamp,
        most: usize,
    ) -> Result<u64, StoreError> {
        let (table, mut gone) = (self.table, 0);
        let work = move |connection: &Connection| kept_since(connection, table, before, most);
        for (principal, since) in self.database.read(work).await? {
            let mut rows = PurgeBatch {
                table,
                principal,
                since,
                after: i64::MIN,
            };
            loop {
                let work = move |connection: &Connection| rows.purge::<T>(connection);
                let (purged, next) = self.database.write(work).await?;
                gone += purged;
                let Some(next) = next else { break };
                rows = next;
            }
        }
        Ok(gone)
    }

    /// The newest `limit` entries since `since`, oldest first.
    pub(in crate::sqlite) async fn recent<T: DeserializeOwned + Send + 'static>(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let (table, principal) = (self.table, principal.clone());
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
            Ok::<_, SqliteError>(entries.collect())
        };
        self.database.read(work).await
    }
}

/// When the oldest entry that stays was written, for each principal.
fn kept_since(
    connection: &Connection,
    table: &str,
    before: Timestamp,
    most: usize,
) -> Result<Vec<(String, i64)>, SqliteError> {
    let before = number(before.as_millis());
    let mut owners = connection.prepare(&format!("SELECT DISTINCT principal FROM {table}"))?;
    let mut oldest = connection.prepare(&format!(
        "SELECT at FROM {table} WHERE principal = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2"
    ))?;
    let owners: Vec<String> = owners.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    let since = owners.into_iter().map(|owner| {
        if most == 0 {
            return Ok((owner, i64::MAX));
        }
        let wanted = (&owner, number(most - 1));
        let oldest: Option<i64> = oldest.query_row(wanted, |row| row.get(0)).optional()?;
        Ok((owner, oldest.map_or(before, |oldest| before.max(oldest))))
    });
    since.collect()
}

/// The rows of a principal that are to go, of which those up to `after` were looked at.
struct PurgeBatch {
    table: &'static str,
    principal: String,
    since: i64,
    after: i64,
}

impl PurgeBatch {
    /// Removes some of them, so that nobody else waits long to write. Returns how many, and what is left to look at.
    fn purge<T: DeserializeOwned>(mut self, connection: &Connection) -> Result<(u64, Option<Self>), SqliteError> {
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
