//! Uses of skills in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{SkillUsage, StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};

use super::storage::Database;
use super::storage::Timeline;

/// The [`SkillUsageStore`](rockbot_core::store::SkillUsageStore) of a [`SqliteMemory`](super::SqliteMemory).
#[derive(Debug)]
pub struct SqliteSkillUsageStore(Timeline);

impl SqliteSkillUsageStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self(Timeline::new(database, "skill_usage"))
    }
}

#[async_trait]
impl TimelineStore<SkillUsage> for SqliteSkillUsageStore {
    async fn append(&self, principal: &Principal, usage: SkillUsage) -> Result<(), StoreError> {
        self.0.append(principal, usage.timestamp, usage).await
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<SkillUsage>, StoreError> {
        self.0.recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.0.purge::<SkillUsage>(before, most).await
    }
}
