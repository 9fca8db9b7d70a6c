//! The time of the last rescan, and how long it counts.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::Timestamp;

/// Minimum interval between two rescans.
const MIN_RESCAN_INTERVAL: Duration = Duration::from_secs(2);

/// Minimum interval between two rescans as a multiple of the duration of the last rescan: rescans
/// take at most a twentieth of the time, however many files there are.
const RESCAN_COST_FACTOR: u32 = 20;

/// The time of the last rescan of a principal's documents, and how long it is fresh.
///
/// It has a lock of its own. A rescan that waits for the write lock of the documents makes all
/// their readers wait, for as long as the system takes to run its thread. A rescan that finds
/// nothing new must not need that lock.
#[derive(Debug, Default)]
pub(super) struct Freshness(Mutex<Option<(Timestamp, Duration)>>);

impl Freshness {
    fn scanned(&self) -> Option<(Timestamp, Duration)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` until the first rescan has ended.
    pub(super) fn is_unscanned(&self) -> bool {
        self.scanned().is_none()
    }

    /// Returns `true` if the folder is to be rescanned.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        // After the clock was set back, the age of the last rescan is unknown.
        self.scanned()
            .is_none_or(|(at, pause)| now < at || now.since(at) >= pause)
    }

    /// Records a rescan that began `at` and lasted `took`.
    pub(super) fn mark_scanned(&self, at: Timestamp, took: Duration) {
        let pause = MIN_RESCAN_INTERVAL.max(took * RESCAN_COST_FACTOR);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, pause));
    }
}
