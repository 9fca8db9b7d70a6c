//! The conversation log in a database.

use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use rockbot_core::Principal;
use rockbot_core::store::{ConversationLog, LogBatch, LogEntry, LogOffset, StoreError};

use super::storage::row::{column, number, parse_or_skip};
use super::storage::{Database, PostgresError, QueryError, statements};
use crate::ConversationLogOptions;

statements! {
    /// The end of a log is a row of its own, which also makes appends of other processes wait: a
    /// trimmed log may have no entries left, and its offsets must still only grow.
    END = "INSERT INTO log_end (principal, position, bytes) VALUES ($1, 0, 0)
        ON CONFLICT (principal) DO UPDATE SET principal = excluded.principal RETURNING position, bytes";
    /// The first of the newest entries that have at most `$2` bytes together.
    HALF = "SELECT coalesce(max(position) + 1, 0) FROM (
        SELECT position, sum(octet_length(json)) OVER (ORDER BY position DESC) AS bytes FROM log WHERE principal = $1
        ) AS newest WHERE bytes > $2";
    TRIM = "DELETE FROM log WHERE principal = $1 AND position < $2";
    BYTES = "UPDATE log_end SET bytes = (SELECT coalesce(sum(octet_length(json)), 0) FROM log WHERE principal = $1)
        WHERE principal = $1 RETURNING bytes";
    ADD = "INSERT INTO log (principal, position, json)
        SELECT $1, $2 + at - 1, json FROM unnest($3::text[]) WITH ORDINALITY AS new (json, at)";
    MOVE = "UPDATE log_end SET position = $2, bytes = $3 WHERE principal = $1";
    COMMITTED = "SELECT position FROM log_reader WHERE principal = $1 AND reader = $2";
    READ = "SELECT position, json FROM log WHERE principal = $1 AND position >= $2 ORDER BY position LIMIT $3";
    COMMIT = "INSERT INTO log_reader (principal, reader, position)
        SELECT $1, $2, $3 WHERE $3 <= coalesce((SELECT position FROM log_end WHERE principal = $1), 0)
        ON CONFLICT (principal, reader) DO UPDATE SET position = greatest(log_reader.position, excluded.position)";
}

/// The [`ConversationLog`] of a [`Postgres`](super::Postgres).
///
/// When the log of a principal is full, its older half is dropped, whether or not all readers
/// have read it. One append has at most a quarter of the maximum size.
#[derive(Debug)]
pub struct PostgresConversationLog {
    database: Arc<Database>,
    options: ConversationLogOptions,
}

impl PostgresConversationLog {
    pub(super) fn new(database: Arc<Database>, options: ConversationLogOptions) -> Self {
        Self { database, options }
    }

    /// Appends entries, after dropping the older half of a full log.
    async fn add(&self, principal: &str, entries: &[LogEntry]) -> Result<(), QueryError> {
        let max_bytes = number(self.options.max_bytes);
        let rows: Vec<_> = entries.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        let len = rows.iter().map(String::len).sum();
        if number(len) > max_bytes / 4 {
            return Err(PostgresError::TooLarge {
                what: "append to the conversation log of",
                id: principal.to_owned(),
                len,
                limit: usize::try_from(max_bytes / 4).unwrap_or(usize::MAX),
            }
            .into());
        }
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let (position, mut bytes) = end(&change, principal).await?;
        if bytes.saturating_add(number(len)) > max_bytes {
            let half = change.prepare_cached(HALF).await?;
            let half: i64 = change.query_one(&half, &[&principal, &(max_bytes / 2)]).await?.get(0);
            bytes = forget(&change, principal, half).await?;
        }
        let add = change.prepare_cached(ADD).await?;
        change.execute(&add, &[&principal, &position, &rows]).await?;
        let (position, bytes) = (position + number(rows.len()), bytes.saturating_add(number(len)));
        let end = change.prepare_cached(MOVE).await?;
        change.execute(&end, &[&principal, &position, &bytes]).await?;
        change.commit().await?;
        Ok(())
    }

    async fn forget(&self, principal: &str, position: i64) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        end(&change, principal).await?;
        forget(&change, principal, position).await?;
        change.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl ConversationLog for PostgresConversationLog {
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        let added = self.add(&column(principal.as_str()), &entries).await;
        added.map_err(|error| self.database.unwritten(error))
    }

    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError> {
        let committed = self
            .database
            .read(COMMITTED, &[&column(principal.as_str()), &column(reader)])
            .await?;
        let committed: i64 = committed.first().map_or(0, |row| row.get(0));
        let values = (column(principal.as_str()), number(limit));
        let rows = self.database.read(READ, &[&values.0, &committed, &values.1]).await?;
        let entries = rows
            .iter()
            .filter_map(|row| parse_or_skip("log entry", &row.get::<_, i64>(0).to_string(), row.get(1)));
        let next = rows.last().map_or(committed, |last| last.get::<_, i64>(0) + 1);
        Ok(LogBatch::new(
            entries.collect(),
            LogOffset(u64::try_from(next).unwrap_or_default()),
        ))
    }

    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        let values = (column(principal.as_str()), number(offset.0));
        self.database
            .write(COMMIT, &[&values.0, &column(reader), &values.1])
            .await?;
        Ok(())
    }

    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError> {
        let trimmed = self.forget(&column(principal.as_str()), number(offset.0)).await;
        trimmed.map_err(|error| self.database.unwritten(error))
    }
}

/// Returns the offset behind the last entry of a log and its size in bytes, and makes other writers
/// of the log wait until the end of the transaction.
async fn end(change: &Transaction<'_>, principal: &str) -> Result<(i64, i64), QueryError> {
    let end = change.prepare_cached(END).await?;
    let row = change.query_one(&end, &[&principal]).await?;
    Ok((row.get(0), row.get(1)))
}

/// Deletes the entries before `position`, and returns the number of bytes left.
async fn forget(change: &Transaction<'_>, principal: &str, position: i64) -> Result<i64, QueryError> {
    let trim = change.prepare_cached(TRIM).await?;
    change.execute(&trim, &[&principal, &position]).await?;
    let bytes = change.prepare_cached(BYTES).await?;
    Ok(change.query_one(&bytes, &[&principal]).await?.get(0))
}
