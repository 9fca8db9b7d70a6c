//! Telling what people changed by hand from what we wrote.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rockbot_core::Timestamp;
use rockbot_core::files::Found;

/// How far the clocks of a host and of its file system may be apart.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether a file was changed after `at`, when we changed it last: then it was somebody else.
pub(crate) fn is_changed_since(file: &Found, at: Timestamp) -> bool {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(at.as_millis()));
    let ours = at.and_then(|at: SystemTime| at.checked_add(CLOCK_SLACK));
    file.modified.zip(ours).is_none_or(|(modified, ours)| modified > ours)
}
