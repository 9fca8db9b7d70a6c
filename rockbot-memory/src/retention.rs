//! How long is kept what nobody needs any more.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long is kept what nobody needs any more. What is too old is removed for good, while nobody waits for it: what a
/// person changed by hand stays, as far as files tell, and so does what cannot be read.
///
/// ```
/// use std::time::Duration;
/// use rockbot_memory::{Memory, Retention};
///
/// // Nothing that was archived ever goes.
/// let retention = Retention { archived: Duration::MAX, ..Retention::default() };
/// let memory = Memory::default().retention(retention); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// How long a memory can be brought back after it was archived. Default 90 days.
    pub archived: Duration,
    /// How long feedback is kept. Default 90 days.
    pub feedback: Duration,
    /// How long uses of skills are kept. Default 180 days.
    pub skill_usage: Duration,
    /// How many entries of feedback, and how many uses of skills, are kept of each principal, however new they are.
    /// Default 10 000.
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
