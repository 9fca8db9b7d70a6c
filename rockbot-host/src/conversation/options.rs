//! How conversation memory on disk is kept.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::{Clock, SystemClock};

use crate::journal::Durability;

/// How a [`FileConversationMemory`](super::FileConversationMemory) is kept.
#[derive(Debug, Clone)]
pub struct ConversationOptions {
    /// How many entries a session keeps: 50 by default, and never more than 8 MiB of text.
    pub window: usize,
    /// How long after its last entry a session is held in memory: 1 hour by default. Older ones are on disk, and read
    /// when somebody asks for them.
    pub idle_timeout: Duration,
    /// How many sessions are held in memory at most: 10 000 by default. Those that were not used for the longest time
    /// give way to others; nothing of them is lost.
    pub max_cached_sessions: usize,
    /// What an append survives. Default [`Durability::Process`]; [`Durability::Synced`] waits for the disk at each
    /// append.
    pub durability: Durability,
    /// The clock that idle time is measured on.
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
