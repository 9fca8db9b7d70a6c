//! Purges entries that are older than their retention period.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::store::{FeedbackStore, LongTermMemory, SkillUsageStore, StoreError};
use rockbot_core::{Clock, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Retention;

/// Delay of the first purge after the host has started, and the interval between purges.
const FIRST_DELAY: Duration = Duration::from_secs(5 * 60);
const INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// The periodic purge.
#[derive(Debug)]
pub(crate) struct RetentionPurge {
    pub(crate) retention: Retention,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) long_term: Option<Arc<dyn LongTermMemory>>,
    pub(crate) feedback: Option<Arc<dyn FeedbackStore>>,
    pub(crate) skill_usage: Option<Arc<dyn SkillUsageStore>>,
}

impl RetentionPurge {
    /// Purges periodically until `stop` fires. A purge in progress runs to its end, so that the
    /// store's lock is free when the next process opens it.
    pub(crate) async fn run(self, stop: &CancellationToken) {
        let mut pause = FIRST_DELAY;
        while stop.run_until_cancelled(sleep(pause)).await.is_some() {
            self.purge(stop).await;
            pause = INTERVAL;
        }
    }

    async fn purge(&self, stop: &CancellationToken) {
        let retention = &self.retention;
        let now = self.clock.now();
        if let Some(memory) = &self.long_term {
            tell("memories", memory.purge(before(now, retention.archived)).await);
        }
        if let Some(store) = self.feedback.as_ref().filter(|_| !stop.is_cancelled()) {
            let purged = store.purge(before(now, retention.feedback), retention.max_lines).await;
            tell("feedback", purged);
        }
        if let Some(store) = self.skill_usage.as_ref().filter(|_| !stop.is_cancelled()) {
            let purged = store
                .purge(before(now, retention.skill_usage), retention.max_lines)
                .await;
            tell("uses of skills", purged);
        }
    }
}

/// Returns the moment `long` before `now`.
fn before(now: Timestamp, long: Duration) -> Timestamp {
    let millis = u64::try_from(long.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}

fn tell(what: &str, purged: Result<u64, StoreError>) {
    match purged {
        Ok(0) => {}
        Ok(count) => tracing::info!(what, count, "what was too old was removed"),
        Err(error) => tracing::warn!(what, %error, "what is too old could not be removed; it is tried again later"),
    }
}
