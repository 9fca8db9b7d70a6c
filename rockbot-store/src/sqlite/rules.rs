//! Rules in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::store::{Rule, RulesStore, StoreError};
use rusqlite::{Connection, OptionalExtension};

use super::storage::Database;
use super::storage::QueryError;

/// The [`RulesStore`] of a [`SqliteMemory`](super::SqliteMemory).
#[derive(Debug)]
pub struct SqliteRulesStore {
    database: Arc<Database>,
}

impl SqliteRulesStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

#[async_trait]
impl RulesStore for SqliteRulesStore {
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let sql = "INSERT INTO rule (principal, folded, text) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            let added = connection.execute(sql, (principal.as_str(), folded(&rule), rule.as_str()))?;
            Ok(added > 0)
        };
        self.database.write(work).await
    }

    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError> {
        let principal = principal.clone();
        let folded = folded(rule);
        let work = move |connection: &Connection| {
            let sql = "DELETE FROM rule WHERE principal = ?1 AND folded = ?2";
            Ok(connection.execute(sql, (principal.as_str(), folded))? > 0)
        };
        self.database.write(work).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let mut statement = connection.prepare("SELECT text FROM rule WHERE principal = ?1 ORDER BY number")?;
            let rows = statement.query_map((principal.as_str(),), |row| row.get::<_, String>(0))?;
            let rules: Result<Vec<_>, _> = rows.map(|text| text.map(|text| Rule::new(&text))).collect();
            Ok::<_, QueryError>(rules?.into_iter().flatten().collect())
        };
        self.database.read(work).await
    }

    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        let principal = principal.clone();
        let work = move |connection: &Connection| {
            let sql = "SELECT name FROM time_zone WHERE principal = ?1";
            let name = connection.query_row(sql, (principal.as_str(),), |row| row.get(0));
            Ok(name.optional()?)
        };
        self.database.read(work).await
    }

    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        let principal = principal.clone();
        let name = name.to_owned();
        let work = move |connection: &Connection| {
            let sql = "INSERT OR REPLACE INTO time_zone (principal, name) VALUES (?1, ?2)";
            connection.execute(sql, (principal.as_str(), name))?;
            Ok(())
        };
        self.database.write(work).await
    }
}

/// Returns the key that rules share if they are [the same](Rule::is_same_as).
fn folded(rule: &Rule) -> String {
    rule.as_str().to_lowercase()
}
