//! Feedback in files: [`FileFeedbackStore`].
//!
//! `{session}.jsonl` has an entry in each line; sessions of the principal `local` are in the
//! folder itself, sessions of other principals in `@{principal}/`. Entries older than the
//! retention period are removed by [`purge`](rockbot_core::store::TimelineStore::purge), which a
//! `Memory` of `rockbot-memory` calls.

use rockbot_core::store::FeedbackEntry;

use super::timeline::FileTimeline;
use crate::storage::timeline::StoredEntry;

/// The [`FeedbackStore`](rockbot_core::store::FeedbackStore) in files: a [`FileTimeline`] of
/// [`FeedbackEntry`].
pub type FileFeedbackStore = FileTimeline<FeedbackEntry>;

impl StoredEntry for FeedbackEntry {
    const WHAT: &'static str = "feedback";

    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    const TABLE: &'static str = "feedback";
}
