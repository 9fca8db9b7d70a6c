//! Skills in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};
use serde_json::{Map, Value};

use super::storage::row::{column, parse, parse_or_skip};
use super::storage::{Database, PostgresError, QueryError};
use crate::storage::documents::{Document as _, Members};

/// Maximum size of a skill in bytes, the same as in files.
const MAX_BYTES: usize = 8 << 20;

/// The [`SkillStore`] of a [`Postgres`](super::Postgres).
///
/// A search reads all skills of the principal. A skill has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct PostgresSkillStore {
    database: Arc<Database>,
}

impl PostgresSkillStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Writes a skill, preserving the unknown members of the row that it replaces.
    async fn put(&self, principal: &str, skill: &Skill) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let id = skill.name.as_str();
        let sql = "SELECT json FROM skill WHERE principal = $1 AND id = $2 FOR UPDATE";
        let before = change.prepare_cached(sql).await?;
        let before = change.query_opt(&before, &[&principal, &id]).await?;
        let other = before.map_or_else(|| Ok(Map::new()), |row| other(id, row.get(0)))?;
        let members = Members {
            document: skill,
            other: &other,
        };
        let json = serde_json::to_string(&members)?;
        if json.len() > MAX_BYTES {
            let (what, id, len, limit) = (Skill::WHAT, id.to_owned(), json.len(), MAX_BYTES);
            return Err(PostgresError::TooLarge { what, id, len, limit }.into());
        }
        let sql = "INSERT INTO skill (principal, id, json) VALUES ($1, $2, $3)
            ON CONFLICT (principal, id) DO UPDATE SET json = excluded.json";
        let write = change.prepare_cached(sql).await?;
        change.execute(&write, &[&principal, &id, &json]).await?;
        change.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl SkillStore for PostgresSkillStore {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        let sql = "SELECT json FROM skill WHERE principal = $1 AND id = $2";
        let rows = self
            .database
            .read(sql, &[&column(principal.as_str()), &name.as_str()])
            .await?;
        let found = rows.first().map(|row| parse(Skill::WHAT, name.as_str(), row.get(0)));
        found.transpose().map_err(|error| self.database.unreadable(error))
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        let saved = self.put(&column(principal.as_str()), &skill).await;
        saved.map_err(|error| self.database.unwritten(error))
    }

    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        let sql = "DELETE FROM skill WHERE principal = $1 AND id = $2 RETURNING json";
        let rows = self
            .database
            .read(sql, &[&column(principal.as_str()), &name.as_str()])
            .await?;
        let deleted = rows
            .first()
            .and_then(|row| parse_or_skip::<Skill>(Skill::WHAT, name.as_str(), row.get(0)));
        Ok(deleted.is_some())
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        let sql = "SELECT id, json FROM skill WHERE principal = $1 ORDER BY id";
        let rows = self.database.read(sql, &[&column(principal.as_str())]).await?;
        let skills = rows
            .iter()
            .filter_map(|row| parse_or_skip(Skill::WHAT, row.get(0), row.get(1)));
        Ok(skills.collect())
    }
}

/// Returns the unknown members of a row. A row that cannot be parsed is an error, so that it is not
/// overwritten.
fn other(id: &str, json: &str) -> Result<Map<String, Value>, QueryError> {
    parse::<Skill>(Skill::WHAT, id, json)?;
    let mut members: Map<String, Value> = parse(Skill::WHAT, id, json)?;
    members.retain(|name, _| !Skill::MEMBERS.contains(&name.as_str()));
    Ok(members)
}
