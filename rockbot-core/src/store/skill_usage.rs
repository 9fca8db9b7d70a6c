//! Uses of skills: the skill, the time and the session of each use, so that unused skills can be
//! recognized.

use serde::{Deserialize, Serialize};

use super::StorePath;
use super::timeline::{InMemoryTimeline, TimelineEntry, TimelineStore};
use crate::{SessionId, Timestamp};

/// A store of uses of skills: a [`TimelineStore`] of [`SkillUsage`].
///
/// Implemented for every `TimelineStore<SkillUsage>`; implement that trait, not
/// `SkillUsageStore`. The conformance suite `testing::conformance::skill_usage_store` checks an
/// implementation.
pub trait SkillUsageStore: TimelineStore<SkillUsage> {}

impl<S: TimelineStore<SkillUsage> + ?Sized> SkillUsageStore for S {}

/// A use of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkillUsage {
    /// Unique id of the use.
    pub id: String,
    /// Name of the skill that was used.
    pub skill_name: StorePath,
    /// Session of the use.
    pub session_id: SessionId,
    /// Time of the use.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

impl SkillUsage {
    /// Creates the use of a skill in a session.
    pub fn new(
        id: impl Into<String>,
        skill_name: StorePath,
        session_id: impl Into<SessionId>,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            id: id.into(),
            skill_name,
            session_id: session_id.into(),
            timestamp,
        }
    }
}

/// A [`SkillUsageStore`] in memory, lost when the process ends. Keeps the newest 10 000 uses of
/// each principal.
pub type InMemorySkillUsageStore = InMemoryTimeline<SkillUsage>;

impl TimelineEntry for SkillUsage {
    fn session(&self) -> &SessionId {
        &self.session_id
    }

    fn timestamp(&self) -> Timestamp {
        self.timestamp
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
