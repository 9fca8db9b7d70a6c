//! Detection of files that a person edited by hand. A purge keeps them, because their text exists
//! nowhere else.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rockbot_core::Timestamp;
use rockbot_core::files::FileEntry;

/// Tolerated clock skew between a host and its file system, which may be on another machine.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns `true` if `file` was modified after `at`, the time of this crate's last own write:
/// then a person or another program edited it. An unknown modification time counts as an edit,
/// which errs towards keeping the file.
pub(crate) fn is_changed_since(file: &FileEntry, at: Timestamp) -> bool {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(at.as_millis()));
    let latest_own = at.and_then(|at: SystemTime| at.checked_add(CLOCK_SLACK));
    file.modified
        .zip(latest_own)
        .is_none_or(|(modified, latest_own)| modified > latest_own)
}
