//! Skills in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::search::Ranked;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};

use super::storage::row::column;
use super::storage::{Database, Documents, QueryError, Rows};

/// The [`SkillStore`] of a [`Postgres`](super::Postgres).
///
/// The skills of a principal are read by the first search of a process, and kept with the index of
/// their words, for 256 principals at most. Each later search reads what any process has changed
/// since. A skill has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct PostgresSkillStore {
    skills: Documents<Skill>,
    database: Arc<Database>,
}

impl PostgresSkillStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            skills: Documents::new(database.clone()),
            database,
        }
    }

    async fn try_save(&self, principal: &str, skill: &Skill) -> Result<(), QueryError> {
        let mut client = self.database.client().await?;
        let change = client.transaction().await?;
        let rows = Rows::new(&change, principal);
        let before = rows.locked(skill.name.as_str()).await?;
        rows.put(skill, before).await?;
        change.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl SkillStore for PostgresSkillStore {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        self.skills.get(principal, name.as_str()).await
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        let saved = self.try_save(&column(principal.as_str()), &skill).await;
        saved.map_err(|error| self.database.unwritten(error))
    }

    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        let deleted = self.skills.delete(principal, name.as_str()).await?;
        Ok(deleted.is_some())
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        self.skills.list(principal).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<Skill>>>, StoreError> {
        self.skills
            .search(principal, query, limit, |skill| skill.is_live())
            .await
    }
}
