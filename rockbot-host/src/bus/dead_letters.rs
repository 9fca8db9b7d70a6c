//! The bounded store of a bus's dead letters.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{DeadLetter, DeadLetterReason};
use rockbot_core::support::loggable;
use rockbot_core::{Clock, MessageId};

use super::queue::QueuedMessage;

/// The newest dead letters of a bus. Beyond its capacity the oldest one is evicted and counted.
#[derive(Debug)]
pub(super) struct DeadLetterStore {
    capacity: usize,
    clock: Arc<dyn Clock>,
    state: Mutex<DeadLetterState>,
}

#[derive(Debug, Default)]
struct DeadLetterState {
    letters: VecDeque<DeadLetter>,
    evicted: u64,
    /// Number of messages that were left when the bus closed, including the messages of evicted
    /// letters.
    closed: usize,
}

impl DeadLetterStore {
    /// Creates an empty store.
    pub(super) fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            capacity,
            clock,
            state: Mutex::default(),
        }
    }

    /// Stores a message as a dead letter with its reason, and logs it.
    pub(super) fn keep(&self, subscription: &Arc<str>, message: QueuedMessage, reason: DeadLetterReason) {
        let QueuedMessage {
            delivery, last_error, ..
        } = message;
        let message_id = &delivery.envelope.message_id;
        tracing::warn!(
            %subscription, topic = %loggable(&delivery.topic), message_id = %loggable(message_id.as_str()),
            attempts = delivery.attempt, ?reason, last_error = %loggable(&last_error),
            "a message became a dead letter"
        );
        let letter = DeadLetter::new(Arc::clone(subscription), delivery, reason, self.clock.now());
        let letter = letter.with_last_error(last_error);
        let mut state = self.lock();
        state.closed += usize::from(reason == DeadLetterReason::Closed);
        state.letters.push_back(letter);
        if state.letters.len() > self.capacity {
            state.letters.pop_front();
            state.evicted += 1;
        }
    }

    /// Returns copies of up to `limit` dead letters, oldest first.
    pub(super) fn oldest(&self, limit: usize) -> Vec<DeadLetter> {
        self.lock().letters.iter().take(limit).cloned().collect()
    }

    /// Removes and returns the oldest dead letter of a message in a subscription.
    pub(super) fn take(&self, subscription: &str, message: &MessageId) -> Option<DeadLetter> {
        let mut state = self.lock();
        let matches =
            |letter: &DeadLetter| *letter.subscription == *subscription && letter.envelope.message_id == *message;
        let at = state.letters.iter().position(matches)?;
        state.letters.remove(at)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.lock().evicted
    }

    /// Returns how many messages became dead letters because the bus was closed.
    pub(super) fn closed(&self) -> usize {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, DeadLetterState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
