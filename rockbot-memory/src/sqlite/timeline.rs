//! A table of dated entries that are only ever added: what feedback and uses of skills have in common.

use std::sync::Arc;

use rockbot_core::store::StoreError;
use rockbot_core::{Principal, Timestamp};
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::database::Database;
use super::error::SqliteError;
use super::row::{number, parse_or_skip, to_json};

#[derive(Debug)]
pub(super) struct Timeline {
    database: Arc<Database>,
    table: &'static str,
}

impl Timeline {
    pub(super) fn new(database: Arc<Database>, table: &'static str) -> Self {
        Self { database, table }
    }

    pub(super) async fn append(
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

    /// The newest `limit` entries since `since`, oldest first.
    pub(super) async fn recent<T: DeserializeOwned + Send + 'static>(
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
