//! Options of the in-process bus.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::context::Trust;
use rockbot_core::{Clock, SystemClock};

/// The limits of an [`InProcessBus`](super::InProcessBus) and the trust in its publishers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InProcessBusOptions {
    /// Maximum time that a publisher waits for capacity in each full subscription. Default 30 s; then
    /// publishing fails with [`BusError::QueueFull`](rockbot_core::messaging::BusError::QueueFull).
    pub publish_wait: Duration,
    /// Maximum size of a message in bytes, headers included. Default 16 MiB.
    pub max_message_bytes: usize,
    /// Maximum number of dead letters that are kept. Default 1000; beyond it the oldest one is
    /// evicted and counted.
    pub max_dead_letters: usize,
    /// Trust in the programs that can publish on this bus. Default [`Trust::User`], since they run in
    /// this process.
    pub trust: Trust,
    /// Clock that dates dead letters. Default [`SystemClock`].
    pub clock: Arc<dyn Clock>,
}

impl Default for InProcessBusOptions {
    fn default() -> Self {
        Self {
            publish_wait: Duration::from_secs(30),
            max_message_bytes: 16 * 1024 * 1024,
            max_dead_letters: 1000,
            trust: Trust::User,
            clock: Arc::new(SystemClock),
        }
    }
}

impl InProcessBusOptions {
    /// Sets the maximum time that a publisher waits for capacity in each full subscription. Default
    /// 30 s.
    #[must_use]
    pub fn with_publish_wait(mut self, wait: Duration) -> Self {
        self.publish_wait = wait;
        self
    }

    /// Sets the maximum size of a message in bytes, headers included. Default 16 MiB.
    #[must_use]
    pub fn with_max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets the maximum number of dead letters that are kept. Default 1000.
    #[must_use]
    pub fn with_max_dead_letters(mut self, count: usize) -> Self {
        self.max_dead_letters = count;
        self
    }

    /// Sets the trust in the programs that can publish on this bus. Default [`Trust::User`].
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the clock that dates dead letters. Default [`SystemClock`].
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
