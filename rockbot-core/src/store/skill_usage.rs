//! Which skills were used, when and where: what tells a good skill from a forgotten one.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::timeline::{Dated, Timeline};
use super::{StoreError, StorePath};
use crate::{Principal, SessionId, Timestamp};

/// Remembers uses of skills.
#[async_trait]
pub trait SkillUsageStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a use.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written.
    async fn append(&self, principal: &Principal, usage: SkillUsage) -> Result<(), StoreError>;

    /// The newest `limit` uses that are not older than `since`, oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<SkillUsage>, StoreError>;

    /// Removes, for all principals, what is older than `before` or than the newest `most` uses of its principal, and
    /// returns how many went. What cannot be read stays, and so does what a person wrote, as far as the store can tell.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written; what went before is gone.
    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError>;
}

/// One use of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillUsage {
    /// The use.
    pub id: String,
    /// The skill.
    pub skill_name: StorePath,
    /// In which conversation.
    pub session_id: SessionId,
    /// When.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

/// Uses of skills in a process: gone when it ends. The newest 10 000 of each principal are kept.
#[derive(Debug, Default)]
pub struct InMemorySkillUsageStore {
    uses: Timeline<SkillUsage>,
}

impl InMemorySkillUsageStore {
    /// A store without uses.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Dated for SkillUsage {
    fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

#[async_trait]
impl SkillUsageStore for InMemorySkillUsageStore {
    async fn append(&self, principal: &Principal, usage: SkillUsage) -> Result<(), StoreError> {
        self.uses.append(principal, usage);
        Ok(())
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<SkillUsage>, StoreError> {
        Ok(self.uses.recent(principal, since, limit))
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        Ok(self.uses.purge(before, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_skill_usage_store() {
        conformance::skill_usage_store(async || InMemorySkillUsageStore::new()).await;
    }
}
