//! Retention periods.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The retention periods of archived and recorded entries. Older entries are purged in the
/// background; entries edited by hand, as far as files tell, and unreadable ones stay.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_memory::{Memory, Retention};
///
/// // Archived memories are never purged.
/// let retention = Retention::default().with_archived(Duration::MAX);
/// let memory = Memory::default().retention(retention); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Time for which an archived memory can be restored. Default 90 days.
    pub archived: Duration,
    /// Retention period of feedback. Default 90 days.
    pub feedback: Duration,
    /// Retention period of the usage log of skills. Default 180 days.
    pub skill_usage: Duration,
    /// Maximum number of feedback entries, and of uses of skills, of each principal, however new they
    /// are. Default 10 000.
    pub max_lines: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            archived: 90 * DAY,
            feedback: 90 * DAY,
            skill_usage: 180 * DAY,
            max_lines: 10_000,
        }
    }
}

impl Retention {
    /// Sets the time for which an archived memory can be restored. Default 90 days.
    #[must_use]
    pub fn with_archived(mut self, archived: Duration) -> Self {
        self.archived = archived;
        self
    }

    /// Sets the retention period of feedback. Default 90 days.
    #[must_use]
    pub fn with_feedback(mut self, feedback: Duration) -> Self {
        self.feedback = feedback;
        self
    }

    /// Sets the retention period of the usage log of skills. Default 180 days.
    #[must_use]
    pub fn with_skill_usage(mut self, skill_usage: Duration) -> Self {
        self.skill_usage = skill_usage;
        self
    }

    /// Sets the maximum number of feedback entries, and of uses of skills, of each principal, however
    /// new they are. Default 10 000.
    #[must_use]
    pub fn with_max_lines(mut self, max_lines: usize) -> Self {
        self.max_lines = max_lines;
        self
    }
}
