//! Retention periods.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The retention periods of archived and recorded entries. Older entries are purged in the background; entries
/// edited by hand, as far as files tell, and unreadable ones stay.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_memory::{Memory, Retention};
///
/// // Archived memories are never purged.
/// let retention = Retention { archived: Duration::MAX, ..Retention::default() };
/// let memory = Memory::default().retention(retention); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Time for which an archived memory can be restored. Default 90 days.
    pub archived: Duration,
    /// Retention period of feedback. Default 90 days.
    pub feedback: Duration,
    /// Retention period of the usage log of skills. Default 180 days.
    pub skill_usage: Duration,
    /// Maximum number of feedback entries, and of uses of skills, of each principal, however new they are. Default
    /// 10 000.
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
