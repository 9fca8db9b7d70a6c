//! Options of file stores.

use std::sync::Arc;

use rockbot_core::store::WorkingLimits;
use rockbot_core::{Clock, SystemClock};

/// Options of a file store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileOptions {
    /// Clock for rescans of external edits and for the expiry of entries. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
        }
    }
}

impl FileOptions {
    /// Sets the clock for rescans of external edits and for the expiry of entries. Default: the
    /// system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

/// Options of a [`FileConversationLog`](crate::file::FileConversationLog).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationLogOptions {
    /// Maximum size of the log of a principal, in bytes. Default 64 MiB. A full log drops its older
    /// half, also for readers that have not read it.
    pub max_bytes: u64,
}

impl Default for ConversationLogOptions {
    fn default() -> Self {
        Self { max_bytes: 64 << 20 }
    }
}

impl ConversationLogOptions {
    /// Sets the maximum size of the log of a principal, in bytes. Default 64 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

/// Options of a [`FileWorkingMemory`](crate::file::FileWorkingMemory).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkingMemoryOptions {
    /// Limits of each namespace.
    pub limits: WorkingLimits,
    /// Clock for the expiry of entries. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for WorkingMemoryOptions {
    fn default() -> Self {
        Self {
            limits: WorkingLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl WorkingMemoryOptions {
    /// Sets the limits of each namespace.
    #[must_use]
    pub fn with_limits(mut self, limits: WorkingLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the clock for the expiry of entries. Default: the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
