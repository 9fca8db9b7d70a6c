//! How stores in files are kept.

use std::sync::Arc;

use rockbot_core::store::WorkingLimits;
use rockbot_core::{Clock, SystemClock};

/// How a store in files is kept.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The clock by which the store looks for changes by others, and by which entries expire. Default: the system's.
    pub clock: Arc<dyn Clock>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
        }
    }
}

/// How a [`FileConversationLog`](crate::FileConversationLog) is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationLogOptions {
    /// How many bytes the log of a principal has at most: 64 MiB by default. When it is full, its older half is
    /// forgotten, also by readers that have not seen it.
    pub max_bytes: u64,
}

impl Default for ConversationLogOptions {
    fn default() -> Self {
        Self { max_bytes: 64 << 20 }
    }
}

/// How a [`FileWorkingMemory`](crate::FileWorkingMemory) is kept.
#[derive(Debug, Clone)]
pub struct WorkingMemoryOptions {
    /// How much each namespace holds.
    pub limits: WorkingLimits,
    /// The clock that tells when an entry's time is over. Default: the system's.
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
