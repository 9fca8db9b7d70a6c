//! Feedback in a database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{FeedbackEntry, StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};

use super::storage::Database;
use super::storage::Timeline;

/// The [`FeedbackStore`](rockbot_core::store::FeedbackStore) of a [`SqliteMemory`](super::SqliteMemory).
#[derive(Debug)]
pub struct SqliteFeedbackStore(Timeline);

impl SqliteFeedbackStore {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self(Timeline::new(database, "feedback"))
    }
}

#[async_trait]
impl TimelineStore<FeedbackEntry> for SqliteFeedbackStore {
    async fn append(&self, principal: &Principal, entry: FeedbackEntry) -> Result<(), StoreError> {
        self.0.append(principal, entry.timestamp, entry).await
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.0.recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.0.purge::<FeedbackEntry>(before, most).await
    }
}
