//! The generic store of dated entries in a database: [`PostgresTimeline`].

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{FeedbackEntry, SkillUsage, StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};
use tokio_postgres::Row;

use super::storage::Database;
use super::storage::row::{column, number, parse_or_skip};
use crate::storage::timeline::StoredEntry;

/// Maximum number of rows that a purge handles in one statement, so that it holds no lock for long.
const BATCH: i64 = 1_000;

/// A store of dated entries in a table of a [`Postgres`](super::Postgres); used as
/// [`PostgresFeedbackStore`] and [`PostgresSkillUsageStore`].
#[derive(Debug)]
pub struct PostgresTimeline<E> {
    database: Arc<Database>,
    entries: PhantomData<fn() -> E>,
}

/// The [`FeedbackStore`](rockbot_core::store::FeedbackStore) of a
/// [`Postgres`](super::Postgres): a [`PostgresTimeline`] of [`FeedbackEntry`].
pub type PostgresFeedbackStore = PostgresTimeline<FeedbackEntry>;

/// The [`SkillUsageStore`](rockbot_core::store::SkillUsageStore) of a
/// [`Postgres`](super::Postgres): a [`PostgresTimeline`] of [`SkillUsage`].
pub type PostgresSkillUsageStore = PostgresTimeline<SkillUsage>;

impl<E: StoredEntry> PostgresTimeline<E> {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            entries: PhantomData,
        }
    }

    /// Returns each principal with the time of its oldest entry that stays.
    async fn kept_since(&self, before: i64, max: usize) -> Result<Vec<(String, i64)>, StoreError> {
        let table = E::TABLE;
        let sql = format!(
            "SELECT principal, (SELECT at FROM {table} AS own WHERE own.principal = owner.principal
                ORDER BY at DESC LIMIT 1 OFFSET $1) FROM (SELECT DISTINCT principal FROM {table}) AS owner"
        );
        let rows = self.database.read(&sql, &[&number(max.saturating_sub(1))]).await?;
        let since = |oldest: Option<i64>| match max {
            0 => i64::MAX,
            _ => oldest.map_or(before, |oldest| before.max(oldest)),
        };
        Ok(rows.iter().map(|row| (row.get(0), since(row.get(1)))).collect())
    }

    /// Removes the entries of a principal that are older than `since`, and returns their number.
    async fn purge_of(&self, principal: &str, since: i64) -> Result<u64, StoreError> {
        let table = E::TABLE;
        let old = format!(
            "SELECT number, json FROM {table} WHERE principal = $1 AND at < $2 AND number > $3 ORDER BY number LIMIT $4"
        );
        let delete = format!("DELETE FROM {table} WHERE number = ANY($1)");
        let (mut gone, mut after) = (0, i64::MIN);
        loop {
            let rows = self.database.read(&old, &[&principal, &since, &after, &BATCH]).await?;
            let Some(last) = rows.last() else { return Ok(gone) };
            after = last.get(0);
            // Rows that cannot be read stay.
            let is_readable = |row: &&Row| serde_json::from_str::<E>(row.get(1)).is_ok();
            let numbers: Vec<i64> = rows.iter().filter(is_readable).map(|row| row.get(0)).collect();
            gone += self.database.write(&delete, &[&numbers]).await?;
        }
    }
}

#[async_trait]
impl<E: StoredEntry> TimelineStore<E> for PostgresTimeline<E> {
    async fn append(&self, principal: &Principal, entry: E) -> Result<(), StoreError> {
        let sql = format!("INSERT INTO {} (principal, at, json) VALUES ($1, $2, $3)", E::TABLE);
        let at = number(entry.timestamp().as_millis());
        let json = serde_json::to_string(&entry).map_err(|error| self.database.unwritten(error.into()))?;
        self.database
            .write(&sql, &[&column(principal.as_str()), &at, &json])
            .await?;
        Ok(())
    }

    async fn purge(&self, before: Timestamp, max: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        for (principal, since) in self.kept_since(number(before.as_millis()), max).await? {
            gone += self.purge_of(&principal, since).await?;
        }
        Ok(gone)
    }

    async fn query_recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<E>, StoreError> {
        let sql = format!(
            "SELECT number, json FROM {} WHERE principal = $1 AND at >= $2 ORDER BY at DESC, number DESC LIMIT $3",
            E::TABLE
        );
        let (since, limit) = (number(since.as_millis()), number(limit));
        let rows = self
            .database
            .read(&sql, &[&column(principal.as_str()), &since, &limit])
            .await?;
        let entries = rows.iter().rev();
        let parsed = entries.filter_map(|row| parse_or_skip(E::TABLE, &row.get::<_, i64>(0).to_string(), row.get(1)));
        Ok(parsed.collect())
    }
}
