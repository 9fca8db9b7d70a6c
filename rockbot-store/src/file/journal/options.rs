//! Options of the turn journal on disk.

use std::sync::Arc;

use rockbot_core::{Clock, SystemClock};

/// The kind of failure that a written record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The end of the process, `kill -9` included: a record is handed to the operating system before
    /// the act. The default, since it costs no wait for the disk.
    #[default]
    Process,
    /// Power loss too: acceptance and the start of mutating calls wait until the record is on the
    /// disk. Writers that wait at the same time share one sync (group commit).
    Synced,
}

/// The options of a [`FileTurnJournal`](super::FileTurnJournal).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JournalOptions {
    /// Failures that a record survives. Default [`Durability::Process`].
    pub durability: Durability,
    /// Size in bytes that a segment reaches before the next segment begins. Default 32 MiB. Smaller
    /// segments are removed sooner and cost more files.
    pub segment_bytes: u64,
    /// Clock that leases and the retention of outcomes are measured on. Default [`SystemClock`].
    pub clock: Arc<dyn Clock>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            segment_bytes: 32 << 20,
            clock: Arc::new(SystemClock),
        }
    }
}

impl JournalOptions {
    /// Sets the failures that a record survives. Default [`Durability::Process`].
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the size in bytes that a segment reaches before the next segment begins. Default 32
    /// MiB.
    #[must_use]
    pub fn with_segment_bytes(mut self, segment_bytes: u64) -> Self {
        self.segment_bytes = segment_bytes;
        self
    }

    /// Sets the clock that leases and the retention of outcomes are measured on. Default
    /// [`SystemClock`].
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
