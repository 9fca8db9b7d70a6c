//! Options of conversation memory on disk.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::{Clock, SystemClock};

use crate::file::journal::Durability;

/// The options of a [`FileConversationMemory`](super::FileConversationMemory).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConversationOptions {
    /// Number of entries that a session keeps. Default 50, and never more than 8 MiB of text; older
    /// entries are dropped.
    pub window: usize,
    /// Minimum time since its last use before a session may be evicted from memory. Default 1 hour.
    /// It stays on disk, and is read again when it is used.
    pub idle_timeout: Duration,
    /// Capacity of the LRU cache of sessions in memory. Default 10 000. Evicting a session loses
    /// nothing, since every append is on disk; the cache exceeds its capacity only while more
    /// sessions are in use at once.
    pub max_cached_sessions: usize,
    /// Failures that an append survives. Default [`Durability::Process`]; with [`Durability::Synced`]
    /// each append waits for the disk.
    pub durability: Durability,
    /// Clock that idle time is measured on. Default [`SystemClock`].
    pub clock: Arc<dyn Clock>,
}

impl Default for ConversationOptions {
    fn default() -> Self {
        Self {
            window: 50,
            idle_timeout: Duration::from_secs(3600),
            max_cached_sessions: 10_000,
            durability: Durability::Process,
            clock: Arc::new(SystemClock),
        }
    }
}

impl ConversationOptions {
    /// Sets the number of entries that a session keeps. Default 50, and never more than 8 MiB of
    /// text; older entries are dropped.
    #[must_use]
    pub fn with_window(mut self, window: usize) -> Self {
        self.window = window;
        self
    }

    /// Sets the minimum time since its last use before a session may be evicted from memory.
    /// Default 1 hour.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sets the capacity of the LRU cache of sessions in memory. Default 10 000.
    #[must_use]
    pub fn with_max_cached_sessions(mut self, max_cached_sessions: usize) -> Self {
        self.max_cached_sessions = max_cached_sessions;
        self
    }

    /// Sets the failures that an append survives. Default [`Durability::Process`]; with
    /// [`Durability::Synced`] each append waits for the disk.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the clock that idle time is measured on. Default [`SystemClock`].
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
