//! The end of a time limit that may be unlimited.

use std::time::Duration;

use tokio::time::Instant;

/// A limit that no process reaches, and that every clock can represent.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Returns the instant `limit` after `from`.
///
/// `Duration::MAX`, the usual "no limit", lies beyond the range of the clock, and adding it would
/// panic. Such a limit ends in thirty years.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::support::deadline_after;
/// use tokio::time::Instant;
///
/// let now = Instant::now();
/// assert_eq!(deadline_after(now, Duration::from_secs(5)), now + Duration::from_secs(5));
/// assert!(deadline_after(now, Duration::MAX) > now);
/// ```
#[inline]
pub fn deadline_after(from: Instant, limit: Duration) -> Instant {
    from.checked_add(limit.min(FAR)).unwrap_or(from)
}
