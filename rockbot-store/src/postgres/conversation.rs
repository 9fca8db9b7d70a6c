//! Conversation memory in a database.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use rockbot_core::store::{ConversationMemory, ConversationPage, ConversationQuery, ConversationTurn, StoreError};
use rockbot_core::{Principal, SessionId};

use super::storage::row::{column, from_column, number, parse_or_skip};
use super::storage::{Database, QueryError};

/// The [`ConversationMemory`] of a [`Postgres`](super::Postgres).
///
/// Keeps the last entries of each session, as many as the [options](super::PostgresOptions)
/// specify, until the session is cleared. An append is idempotent, also over processes: a turn
/// that the session has already is skipped.
#[derive(Debug)]
pub struct PostgresConversationMemory {
    database: Arc<Database>,
    window: usize,
}

impl PostgresConversationMemory {
    pub(super) fn new(database: Arc<Database>, window: usize) -> Self {
        Self { database, window }
    }

    async fn add(&self, (principal, session): (&str, &str), entries: &[ConversationTurn]) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let known = lock(&change, principal, session).await?;
        let new = entries
            .iter()
            .filter(|entry| !known.contains(&*column(entry.turn.as_str())));
        let (mut turns, mut rows) = (Vec::new(), Vec::new());
        for entry in new {
            turns.push(column(entry.turn.as_str()));
            rows.push(serde_json::to_string(entry)?);
        }
        let sql = "INSERT INTO conversation (principal, session, turn, json)
            SELECT $1, $2, turn, json FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS new (turn, json, at)
            ORDER BY at";
        let insert = change.prepare_cached(sql).await?;
        change.execute(&insert, &[&principal, &session, &turns, &rows]).await?;
        let sql = "DELETE FROM conversation WHERE principal = $1 AND session = $2 AND number <= (
            SELECT number FROM conversation WHERE principal = $1 AND session = $2 ORDER BY number DESC LIMIT 1 OFFSET $3)";
        let keep = change.prepare_cached(sql).await?;
        change
            .execute(&keep, &[&principal, &session, &number(self.window)])
            .await?;
        change.commit().await?;
        Ok(())
    }

    /// Removes a session. It waits for appends that have begun, so that none of them outlives it.
    async fn remove(&self, principal: &str, session: &str) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        for sql in [
            "DELETE FROM session WHERE principal = $1 AND session = $2",
            "DELETE FROM conversation WHERE principal = $1 AND session = $2",
        ] {
            let delete = change.prepare_cached(sql).await?;
            change.execute(&delete, &[&principal, &session]).await?;
        }
        change.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl ConversationMemory for PostgresConversationMemory {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let added = self
            .add((&column(principal.as_str()), &column(session.as_str())), &entries)
            .await;
        added.map_err(|error| self.database.unwritten(error))
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let sql = "SELECT turn, json FROM conversation WHERE principal = $1 AND session = $2
            ORDER BY number DESC LIMIT $3";
        let values = (column(principal.as_str()), column(session.as_str()), number(limit));
        let rows = self.database.read(sql, &[&values.0, &values.1, &values.2]).await?;
        let entries = rows.iter().rev();
        Ok(entries
            .filter_map(|row| parse_or_skip("entry of turn", row.get(0), row.get(1)))
            .collect())
    }

    /// Reads the window of the session, which is bounded, and selects the page from it.
    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let entries = self.recent(principal, session, self.window).await?;
        Ok(query.select(entries.iter().rev()))
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        let cleared = self
            .remove(&column(principal.as_str()), &column(session.as_str()))
            .await;
        cleared.map_err(|error| self.database.unwritten(error))
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let sql = "SELECT session FROM session WHERE principal = $1 ORDER BY session COLLATE \"C\"";
        let rows = self.database.read(sql, &[&column(principal.as_str())]).await?;
        Ok(rows
            .iter()
            .map(|row| SessionId::from(from_column(row.get(0))))
            .collect())
    }
}

/// Makes other appends to the session wait until the end of the transaction, and returns the ids of
/// its turns.
async fn lock(change: &Transaction<'_>, principal: &str, session: &str) -> Result<BTreeSet<String>, QueryError> {
    let sql = "INSERT INTO session (principal, session) VALUES ($1, $2)
        ON CONFLICT (principal, session) DO UPDATE SET session = excluded.session";
    let lock = change.prepare_cached(sql).await?;
    change.execute(&lock, &[&principal, &session]).await?;
    let sql = "SELECT DISTINCT turn FROM conversation WHERE principal = $1 AND session = $2";
    let turns = change.prepare_cached(sql).await?;
    let turns = change.query(&turns, &[&principal, &session]).await?;
    Ok(turns.iter().map(|row| row.get(0)).collect())
}
