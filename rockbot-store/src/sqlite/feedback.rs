//! Feedback in a database.

use rockbot_core::store::FeedbackEntry;

use super::timeline::SqliteTimeline;

/// The [`FeedbackStore`](rockbot_core::store::FeedbackStore) of a
/// [`SqliteMemory`](super::SqliteMemory): a [`SqliteTimeline`] of [`FeedbackEntry`].
pub type SqliteFeedbackStore = SqliteTimeline<FeedbackEntry>;
