//! The promises of [`FeedbackStore`].

use async_trait::async_trait;

use super::timeline::{Timeline, timeline};
use crate::store::{FeedbackEntry, FeedbackSignal, FeedbackStore, StoreError};
use crate::{Principal, Timestamp};

/// Checks that what `make` makes keeps the promises of [`FeedbackStore`].
///
/// # Panics
///
/// Panics when a promise is broken.
pub async fn feedback_store<S: FeedbackStore>(make: impl AsyncFn() -> S) {
    timeline(async || Feedback(make().await)).await;
}

struct Feedback<S>(S);

#[async_trait]
impl<S: FeedbackStore> Timeline for Feedback<S> {
    type Entry = FeedbackEntry;

    fn entry(session: &str, millis: u64) -> FeedbackEntry {
        FeedbackEntry {
            id: format!("f{millis}"),
            session_id: session.into(),
            signal_type: FeedbackSignal::Correction,
            summary: "two\nlines".to_owned(),
            detail: Some("{}".to_owned()),
            timestamp: Timestamp::from_millis(millis),
        }
    }

    async fn append(&self, principal: &Principal, entry: FeedbackEntry) -> Result<(), StoreError> {
        self.0.append(principal, entry).await
    }

    async fn recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.0.query_recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.0.purge(before, most).await
    }
}
