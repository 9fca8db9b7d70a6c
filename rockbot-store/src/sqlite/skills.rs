//! Skills in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::search::Ranked;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};

use super::storage::Database;
use super::storage::IndexedTable;

/// The [`SkillStore`] of a [`SqliteMemory`](super::SqliteMemory).
///
/// The names and purposes of its skills are held in memory once they are searched, for 256
/// principals at most. A skill has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct SqliteSkillStore {
    skills: IndexedTable<Skill>,
}

impl SqliteSkillStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            skills: IndexedTable::new(database),
        }
    }
}

#[async_trait]
impl SkillStore for SqliteSkillStore {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        let name = name.clone();
        self.skills
            .read(principal, move |skills| skills.get(name.as_str()))
            .await
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        self.skills.write(principal, move |skills| skills.put(&skill)).await
    }

    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        let name = name.clone();
        let deleted = self.skills.write(principal, move |skills| skills.delete(&name)).await?;
        Ok(deleted.is_some())
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        self.skills.read(principal, |skills| skills.list()).await
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
