//! Rules in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::store::{Rule, RulesStore, StoreError};

use super::storage::Database;
use super::storage::row::{column, from_column};

/// The [`RulesStore`] of a [`Postgres`](super::Postgres).
#[derive(Debug)]
pub struct PostgresRulesStore {
    database: Arc<Database>,
}

impl PostgresRulesStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

#[async_trait]
impl RulesStore for PostgresRulesStore {
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError> {
        let sql = "INSERT INTO rule (principal, folded, text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let values = (column(principal.as_str()), folded(&rule), column(rule.as_str()));
        let added = self.database.write(sql, &[&values.0, &values.1, &values.2]).await?;
        Ok(added > 0)
    }

    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError> {
        let sql = "DELETE FROM rule WHERE principal = $1 AND folded = $2";
        let removed = self
            .database
            .write(sql, &[&column(principal.as_str()), &folded(rule)])
            .await?;
        Ok(removed > 0)
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError> {
        let sql = "SELECT text FROM rule WHERE principal = $1 ORDER BY number";
        let rows = self.database.read(sql, &[&column(principal.as_str())]).await?;
        Ok(rows
            .iter()
            .filter_map(|row| Rule::new(&from_column(row.get(0))))
            .collect())
    }

    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        let sql = "SELECT name FROM time_zone WHERE principal = $1";
        let rows = self.database.read(sql, &[&column(principal.as_str())]).await?;
        Ok(rows.first().map(|row| from_column(row.get(0))))
    }

    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        let sql = "INSERT INTO time_zone (principal, name) VALUES ($1, $2)
            ON CONFLICT (principal) DO UPDATE SET name = excluded.name";
        self.database
            .write(sql, &[&column(principal.as_str()), &column(name)])
            .await?;
        Ok(())
    }
}

/// Returns the key that rules share if they are [the same](Rule::is_same_as).
fn folded(rule: &Rule) -> String {
    column(&rule.as_str().to_lowercase()).into_owned()
}
