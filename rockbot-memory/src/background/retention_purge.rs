//! Removing what is kept for too long.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::store::{FeedbackStore, LongTermMemory, SkillUsageStore, StoreError};
use rockbot_core::{Clock, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Retention;

/// How long after its start a host looks for what is too old, and how long until it does so again.
const FIRST_DELAY: Duration = Duration::from_secs(5 * 60);
const INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// Removes what is kept for too long, again and again.
#[derive(Debug)]
pub(crate) struct RetentionPurge {
    pub(crate) retention: Retention,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) long_term: Option<Arc<dyn LongTermMemory>>,
    pub(crate) feedback: Option<Arc<dyn FeedbackStore>>,
    pub(crate) skill_usage: Option<Arc<dyn SkillUsageStore>>,
}

impl RetentionPurge {
    /// Goes on until it is told to stop. What it has begun in a store it ends first: whoever opens it next must find it free.
    pub(crate) async fn run(self, stop: &CancellationToken) {
        let mut pause = FIRST_DELAY;
        while stop.run_until_cancelled(sleep(pause)).await.is_some() {
            self.purge(stop).await;
            pause = INTERVAL;
        }
    }

    async fn purge(&self, stop: &CancellationToken) {
        let (retention, now) = (&self.retention, self.clock.now());
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

/// The moment that was so long before `now`.
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
