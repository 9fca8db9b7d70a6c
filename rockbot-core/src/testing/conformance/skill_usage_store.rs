//! The promises of [`SkillUsageStore`].

use async_trait::async_trait;

use super::timeline::{Timeline, timeline};
use crate::store::{SkillUsage, SkillUsageStore, StoreError, StorePath};
use crate::{Principal, Timestamp};

/// Checks that what `make` makes keeps the promises of [`SkillUsageStore`].
///
/// # Panics
///
/// Panics when a promise is broken.
pub async fn skill_usage_store<S: SkillUsageStore>(make: impl AsyncFn() -> S) {
    timeline(async || Uses(make().await)).await;
}

struct Uses<S>(S);

#[async_trait]
impl<S: SkillUsageStore> Timeline for Uses<S> {
    type Entry = SkillUsage;

    fn entry(session: &str, millis: u64) -> SkillUsage {
        SkillUsage {
            id: format!("u{millis}"),
            skill_name: StorePath::new("mcp/email").expect("the name is a path"),
            session_id: session.into(),
            timestamp: Timestamp::from_millis(millis),
        }
    }

    async fn append(&self, principal: &Principal, entry: SkillUsage) -> Result<(), StoreError> {
        self.0.append(principal, entry).await
    }

    async fn recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<SkillUsage>, StoreError> {
        self.0.query_recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.0.purge(before, most).await
    }
}
