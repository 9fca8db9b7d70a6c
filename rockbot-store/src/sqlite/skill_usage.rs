//! Uses of skills in a database.

use rockbot_core::store::SkillUsage;

use super::timeline::SqliteTimeline;

/// The [`SkillUsageStore`](rockbot_core::store::SkillUsageStore) of a
/// [`SqliteMemory`](super::SqliteMemory): a [`SqliteTimeline`] of [`SkillUsage`].
pub type SqliteSkillUsageStore = SqliteTimeline<SkillUsage>;
