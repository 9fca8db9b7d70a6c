//! The dead letters of a process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{DeadLetter, DeadLetterReason};
use rockbot_core::support::loggable;
use rockbot_core::{Clock, MessageId};

use super::queue::QueuedMessage;

/// Keeps the newest dead letters of a bus.
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
    /// How many there were because the bus was closed.
    closed: usize,
}

impl DeadLetterStore {
    pub(super) fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            capacity,
            clock,
            state: Mutex::default(),
        }
    }

    /// Keeps a message that was given up. The oldest one is evicted, and counted, when there are too many.
    pub(super) fn keep(&self, subscription: &Arc<str>, item: QueuedMessage, reason: DeadLetterReason) {
        let QueuedMessage {
            delivery, last_error, ..
        } = item;
        let message_id = &delivery.envelope.message_id;
        tracing::warn!(
            %subscription, topic = %loggable(&delivery.topic), message_id = %loggable(message_id.as_str()),
            attempts = delivery.attempt, ?reason, last_error = %loggable(&last_error),
            "a message became a dead letter"
        );
        let letter = DeadLetter {
            subscription: Arc::clone(subscription),
            topic: delivery.topic,
            envelope: delivery.envelope,
            reason,
            attempts: delivery.attempt,
            last_error,
            at: self.clock.now(),
        };
        let mut state = self.lock();
        state.closed += usize::from(reason == DeadLetterReason::Closed);
        state.letters.push_back(letter);
        if state.letters.len() > self.capacity {
            state.letters.pop_front();
            state.evicted += 1;
        }
    }

    pub(super) fn oldest(&self, limit: usize) -> Vec<DeadLetter> {
        self.lock().letters.iter().take(limit).cloned().collect()
    }

    pub(super) fn take(&self, subscription: &str, message: &MessageId) -> Option<DeadLetter> {
        let mut state = self.lock();
        let is_it =
            |letter: &DeadLetter| *letter.subscription == *subscription && letter.envelope.message_id == *message;
        let at = state.letters.iter().position(is_it)?;
        state.letters.remove(at)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.lock().evicted
    }

    pub(super) fn closed(&self) -> usize {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, DeadLetterState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
