//! Options of file stores.

use std::sync::Arc;

use rockbot_core::store::WorkingLimits;
use rockbot_core::{Clock, SystemClock};

/// Options of a file store.
#[derive(Debug, Clone)]
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

/// Options of a [`FileConversationLog`](crate::FileConversationLog).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationLogOptions {
    /// Maximum size of the log of a principal, in bytes. Default 64 MiB. A full log drops its older half,
    /// also for readers that have not read it.
    pub max_bytes: u64,
}

impl Default for ConversationLogOptions {
    fn default() -> Self {
        Self { max_bytes: 64 << 20 }
    }
}

/// Options of a [`FileWorkingMemory`](crate::FileWorkingMemory).
#[derive(Debug, Clone)]
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
