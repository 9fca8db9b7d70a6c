//! The conversation log in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::store::{ConversationLog, LogBatch, LogEntry, LogOffset, StoreError};
use rusqlite::{Connection, OptionalExtension};

use super::storage::Database;
use super::storage::row::{number, parse_or_skip, to_json};
use super::storage::{QueryError, SqliteError};
use crate::ConversationLogOptions;

/// The [`ConversationLog`] of a [`SqliteMemory`](super::SqliteMemory).
///
/// When the log of a principal is full, its older half is dropped, whether or not all readers
/// have read it. One append has at most a quarter of the maximum size.
#[derive(Debug)]
pub struct SqliteConversationLog {
    database: Arc<Database>,
    options: ConversationLogOptions,
}

impl SqliteConversationLog {
    pub(super) fn new(database: Arc<Database>, options: ConversationLogOptions) -> Self {
        Self { database, options }
    }
}

#[async_trait]
impl ConversationLog for SqliteConversationLog {
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        let principal = principal.clone();
        let max_bytes = number(self.options.max_bytes);
        let work = move |connection: &Connection| append(connection, principal.as_str(), &entries, max_bytes);
        self.database.write(work).await
    }

    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError> {
        let principal = principal.clone();
        let reader = reader.to_owned();
        let work = move |connection: &Connection| read(connection, principal.as_str(), &reader, limit);
        self.database.read(work).await
    }

    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        let principal = principal.clone();
        let reader = reader.to_owned();
        let work = move |connection: &Connection| commit(connection, principal.as_str(), &reader, number(offset.0));
        self.database.write(work).await
    }

    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            forget(connection, principal.as_str(), number(offset.0))?;
            Ok(())
        };
        self.database.write(work).await
    }
}

/// The offset behind the last entry of a log, and the size of the log.
///
/// Kept in a row of its own: a trimmed log may have no entries left, and its offsets must still
/// only grow.
#[derive(Debug, Clone, Copy, Default)]
struct LogEnd {
    position: i64,
    bytes: i64,
}

/// Appends entries, after dropping the older half of a full log.
fn append(connection: &Connection, principal: &str, entries: &[LogEntry], max_bytes: i64) -> Result<(), QueryError> {
    let rows: Vec<_> = entries.iter().map(to_json).collect::<Result<_, _>>()?;
    let len = rows.iter().map(String::len).sum();
    if number(len) > max_bytes / 4 {
        return Err(SqliteError::TooLarge {
            what: "append to the conversation log of",
            id: principal.to_owned(),
            len,
            limit: usize::try_from(max_bytes / 4).unwrap_or(usize::MAX),
        }
        .into());
    }
    let mut end = end(connection, principal)?;
    if end.bytes.saturating_add(number(len)) > max_bytes {
        end.bytes = forget(connection, principal, half(connection, principal, max_bytes / 2)?)?;
    }
    let mut insert = connection.prepare("INSERT INTO log (principal, position, json) VALUES (?1, ?2, ?3)")?;
    for row in rows {
        insert.execute((principal, end.position, row))?;
        end.position += 1;
    }
    let sql = "INSERT INTO log_end (principal, position, bytes) VALUES (?1, ?2, ?3)
        ON CONFLICT DO UPDATE SET position = excluded.position, bytes = excluded.bytes";
    connection.execute(sql, (principal, end.position, end.bytes.saturating_add(number(len))))?;
    Ok(())
}

/// Returns the offset of the first of the newest entries that have at most `max_bytes` together.
fn half(connection: &Connection, principal: &str, max_bytes: i64) -> Result<i64, QueryError> {
    let sql = "SELECT coalesce(max(position) + 1, 0) FROM (
        SELECT position, sum(octet_length(json)) OVER (ORDER BY position DESC) AS bytes FROM log WHERE principal = ?1
        ) WHERE bytes > ?2";
    Ok(connection.query_row(sql, (principal, max_bytes), |row| row.get(0))?)
}

/// Deletes the entries before `position`, and returns the number of bytes left.
fn forget(connection: &Connection, principal: &str, position: i64) -> Result<i64, QueryError> {
    let sql = "DELETE FROM log WHERE principal = ?1 AND position < ?2";
    connection.execute(sql, (principal, position))?;
    let sql = "SELECT coalesce(sum(octet_length(json)), 0) FROM log WHERE principal = ?1";
    let bytes = connection.query_row(sql, (principal,), |row| row.get(0))?;
    let sql = "UPDATE log_end SET bytes = ?2 WHERE principal = ?1";
    connection.execute(sql, (principal, bytes))?;
    Ok(bytes)
}

/// Reads up to `limit` entries from the committed offset of `reader`.
fn read(connection: &Connection, principal: &str, reader: &str, limit: usize) -> Result<LogBatch, QueryError> {
    let sql = "SELECT position FROM log_reader WHERE principal = ?1 AND reader = ?2";
    let committed = connection.query_row(sql, (principal, reader), |row| row.get(0));
    let committed = committed.optional()?.unwrap_or_default();
    let sql = "SELECT position, json FROM log WHERE principal = ?1 AND position >= ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((principal, committed, number(limit)), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
    let entries = rows
        .iter()
        .filter_map(|(position, json)| parse_or_skip("log entry", &position.to_string(), json));
    let next = rows.last().map_or(committed, |(last, _)| last + 1);
    Ok(LogBatch::new(
        entries.collect(),
        LogOffset(u64::try_from(next).unwrap_or_default()),
    ))
}

/// Stores the offset of `reader`, which only grows.
fn commit(connection: &Connection, principal: &str, reader: &str, position: i64) -> Result<(), QueryError> {
    if position <= end(connection, principal)?.position {
        let sql = "INSERT INTO log_reader (principal, reader, position) VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET position = max(position, excluded.position)";
        connection.execute(sql, (principal, reader, position))?;
    }
    Ok(())
}

/// Returns the end of the log; zero for a log without entries.
fn end(connection: &Connection, principal: &str) -> Result<LogEnd, QueryError> {
    let sql = "SELECT position, bytes FROM log_end WHERE principal = ?1";
    let end = connection.query_row(sql, (principal,), |row| {
        let position = row.get(0)?;
        let bytes = row.get(1)?;
        Ok(LogEnd { position, bytes })
    });
    Ok(end.optional()?.unwrap_or_default())
}
