//! Conversation memory in a database.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{ConversationMemory, ConversationPage, ConversationQuery, ConversationTurn, StoreError};
use rockbot_core::{Principal, SessionId};
use rusqlite::Connection;

use super::storage::Database;
use super::storage::QueryError;
use super::storage::row::{number, parse_or_skip, to_json};

/// The [`ConversationMemory`] of a [`SqliteMemory`](super::SqliteMemory).
///
/// Keeps the last entries of each session, as many as the [options](super::SqliteMemoryOptions)
/// specify, until the session is cleared. An append is idempotent: a turn that the session has
/// already is skipped.
#[derive(Debug)]
pub struct SqliteConversationMemory {
    database: Arc<Database>,
    window: usize,
}

impl SqliteConversationMemory {
    pub(super) fn new(database: Arc<Database>, window: usize) -> Self {
        Self { database, window }
    }
}

#[async_trait]
impl ConversationMemory for SqliteConversationMemory {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let principal = principal.clone();
        let session = session.clone();
        let window = self.window;
        let work = move |connection: &Connection| {
            let owner = (principal.as_str(), session.as_str());
            let known = turns(connection, owner)?;
            for entry in entries.iter().filter(|entry| !known.contains(entry.turn.as_str())) {
                add(connection, owner, entry)?;
            }
            keep(connection, owner, window)
        };
        self.database.write(work).await
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let principal = principal.clone();
        let session = session.clone();
        let work = move |connection: &Connection| {
            let sql = "SELECT turn, json FROM conversation WHERE principal = ?1 AND session = ?2
                ORDER BY number DESC LIMIT ?3";
            let mut statement = connection.prepare(sql)?;
            let wanted = (principal.as_str(), session.as_str(), number(limit));
            let rows = statement.query_map(wanted, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
            let entries = rows.iter().rev();
            Ok::<_, QueryError>(
                entries
                    .filter_map(|(turn, json)| parse_or_skip("entry of turn", turn, json))
                    .collect(),
            )
        };
        self.database.read(work).await
    }

    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let principal = principal.clone();
        let session = session.clone();
        let query = query.clone();
        let work = move |connection: &Connection| page(connection, (principal.as_str(), session.as_str()), query);
        self.database.read(work).await
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        let principal = principal.clone();
        let session = session.clone();
        let work = move |connection: &Connection| keep(connection, (principal.as_str(), session.as_str()), 0);
        self.database.write(work).await
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let sql = "SELECT DISTINCT session FROM conversation WHERE principal = ?1 ORDER BY session";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map((principal.as_str(),), |row| row.get::<_, String>(0))?;
            let sessions = rows.map(|session| session.map(SessionId::from));
            Ok::<_, QueryError>(sessions.collect::<Result<_, _>>()?)
        };
        self.database.read(work).await
    }
}

/// Reads the rows of a page, and the row before it, which tells that there is an earlier page.
fn page(
    connection: &Connection,
    (principal, session): (&str, &str),
    mut query: ConversationQuery,
) -> Result<ConversationPage, QueryError> {
    let end: i64 = match query.before.take() {
        None => i64::MAX,
        Some(turn) => {
            let sql =
                "SELECT coalesce(min(number), 0) FROM conversation WHERE principal = ?1 AND session = ?2 AND turn = ?3";
            connection.query_row(sql, (principal, session, turn.as_str()), |row| row.get(0))?
        }
    };
    let sql = "SELECT turn, json FROM conversation WHERE principal = ?1 AND session = ?2 AND number < ?3
        ORDER BY number DESC";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((principal, session, end), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut failed = None;
    let readable = rows.map_while(|row: rusqlite::Result<(String, String)>| match row {
        Ok((turn, json)) => Some(parse_or_skip::<ConversationTurn>("entry of turn", &turn, &json)),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let page = query.select(readable.flatten());
    match failed {
        None => Ok(page),
        Some(error) => Err(error.into()),
    }
}

/// Returns the ids of the turns of a session.
fn turns(connection: &Connection, owner: (&str, &str)) -> Result<BTreeSet<String>, QueryError> {
    let sql = "SELECT turn FROM conversation WHERE principal = ?1 AND session = ?2";
    let mut statement = connection.prepare(sql)?;
    let turns = statement.query_map(owner, |row| row.get(0))?;
    Ok(turns.collect::<Result<_, _>>()?)
}

/// Inserts one entry.
fn add(
    connection: &Connection,
    (principal, session): (&str, &str),
    entry: &ConversationTurn,
) -> Result<(), QueryError> {
    let sql = "INSERT INTO conversation (principal, session, turn, json) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, (principal, session, entry.turn.as_str(), to_json(entry)?))?;
    Ok(())
}

/// Removes all but the last `window` entries of a session.
fn keep(connection: &Connection, (principal, session): (&str, &str), window: usize) -> Result<(), QueryError> {
    let sql = "DELETE FROM conversation WHERE principal = ?1 AND session = ?2 AND number <=
        (SELECT number FROM conversation WHERE principal = ?1 AND session = ?2 ORDER BY number DESC LIMIT 1 OFFSET ?3)";
    connection.execute(sql, (principal, session, number(window)))?;
    Ok(())
}
