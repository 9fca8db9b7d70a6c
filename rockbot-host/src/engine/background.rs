//! The single slot for work in the background: it is free while users are silent, and is left as
//! soon as a user writes.
//!
//! Work that can wait (evaluation of sessions, filing, summaries) waits for the slot
//! (`TurnRunner::background`). The slot is free while there is no other work, no turn and no
//! model call, and after a time without messages of users. An accepted message cancels the work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::turn::BackgroundSlot;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Interval between two checks whether the host is idle, while work waits.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// State of the slot.
#[derive(Debug)]
pub(super) struct Background {
    slot: Arc<Semaphore>,
    users: Mutex<Users>,
}

#[derive(Debug, Default)]
struct Users {
    /// Time of the last message, or of the end of its turn; `None` before the first message.
    last_active: Option<Instant>,
    /// Cancels the work in the slot.
    working: CancellationToken,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            slot: Arc::new(Semaphore::new(1)),
            users: Mutex::default(),
        }
    }
}

impl Background {
    /// Notes that a user's message was accepted, which cancels the work in the slot.
    pub(super) fn user_wrote(&self) {
        let mut users = self.lock();
        users.last_active = Some(Instant::now());
        users.working.cancel();
    }

    /// Notes that the turn of a user's message has ended.
    pub(super) fn user_was_answered(&self) {
        self.lock().last_active = Some(Instant::now());
    }

    /// Waits for the slot: until no other work has it, users have been silent for `quiet`, and
    /// `is_idle` returns `true`.
    pub(super) async fn enter(&self, quiet: Duration, is_idle: impl Fn() -> bool) -> BackgroundSlot {
        // The semaphore is never closed; without its permit the work would run beside other work, which
        // does no harm.
        let held = self.slot.clone().acquire_owned().await.ok();
        loop {
            if let Some(silent_from) = self.silent_from(quiet) {
                sleep_until(silent_from).await;
            } else if !is_idle() {
                sleep(POLL_INTERVAL).await;
            } else if let Some(working) = self.begin(quiet) {
                return BackgroundSlot::new(working, held);
            }
        }
    }

    /// Returns the moment when users will have been silent for `quiet`, if that is in the future.
    fn silent_from(&self, quiet: Duration) -> Option<Instant> {
        let silent_from = self.lock().last_active?.checked_add(quiet);
        // A time that no clock reaches is as good as one in a day.
        let silent_from = silent_from.unwrap_or_else(|| Instant::now() + Duration::from_secs(24 * 60 * 60));
        (silent_from > Instant::now()).then_some(silent_from)
    }

    /// Begins work, unless a user has written since the last look.
    fn begin(&self, quiet: Duration) -> Option<CancellationToken> {
        let mut users = self.lock();
        if users.last_active.is_some_and(|last| last.elapsed() < quiet) {
            return None;
        }
        users.working = CancellationToken::new();
        Some(users.working.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Users> {
        // No code that can panic runs under the lock.
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
