//! A deduplicating window over message ids: a bus delivers at least once, a handler runs once.
//!
//! Messages are handled once within a dedup window: a bus delivers at least once, and a handler
//! should not have to know.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{Disposition, MessageEnvelope};
use tokio::sync::watch;

/// Number of handled messages in one generation of the window. The window holds at least this
/// many of the latest messages and at most twice as many.
///
/// A redelivery comes seconds or minutes after the original, so the window has to outlast the
/// messages of some minutes. Larger windows cost 16 bytes and a slower lookup per message; a
/// redelivery that comes later is handled again.
const GENERATION: usize = 10_000;

/// A deduplicating window over the messages that were handled lately and the messages that are
/// being handled.
#[derive(Debug, Default)]
pub(super) struct DedupWindow {
    /// Hash keys, random and secret: a sender that knew them could craft a message whose key equals
    /// the key of another sender's message, which would then be dropped as a duplicate.
    secrets: [RandomState; 2],
    state: Mutex<DedupState>,
}

#[derive(Debug, Default)]
struct DedupState {
    /// The messages that are being handled. The channel is created by the first copy that has to wait.
    in_flight: HashMap<MessageKey, Option<watch::Sender<()>>>,
    /// The current generation of handled messages.
    handled: HashSet<MessageKey>,
    /// The previous generation, dropped as a whole: evicting keys one by one in order would need a
    /// queue beside the set, and each eviction a lookup of memory that is no longer in the cache.
    handled_before: HashSet<MessageKey>,
}

/// A 128-bit hash of the members that identify a message.
type MessageKey = [u64; 2];

/// The outcome of admitting a message to the window.
pub(super) enum Admission<'a> {
    /// The message was handled before.
    Duplicate,
    /// The message is new; further copies wait until the guard is dropped.
    New(InFlightGuard<'a>),
}

/// A guard of a message that is being handled. Dropped without [`settle`](Self::settle), as on
/// cancellation, it leaves no trace of the message, so that a redelivery is handled.
pub(super) struct InFlightGuard<'a> {
    window: &'a DedupWindow,
    key: MessageKey,
    is_handled: bool,
}

impl DedupWindow {
    /// Returns the key of a message: its source and its id and, with `whole`, its body and the
    /// question that it is.
    ///
    /// `whole` is for idempotent handlers. Only exact copies are duplicates for them: a sender that
    /// asks again under a new correlation id, or sends another text under the same id, gets the
    /// handler's answer.
    pub(super) fn key(&self, envelope: &MessageEnvelope, whole: bool) -> MessageKey {
        let question = || (&envelope.correlation_id, &envelope.reply_to, &envelope.body);
        let identity = (&envelope.source, &envelope.message_id, whole.then(question));
        self.secrets.each_ref().map(|secret| secret.hash_one(identity))
    }

    /// Admits a message, after waiting for another copy of it that is being handled.
    ///
    /// The copy that waits is handled if the first copy fails, and is a duplicate if the first copy
    /// succeeds. Cancellation-safe: a caller that stops waiting has changed nothing.
    pub(super) async fn enter(&self, key: MessageKey) -> Admission<'_> {
        loop {
            let mut finished = match self.try_enter(key) {
                Ok(admission) => return admission,
                Err(finished) => finished,
            };
            // The guard drops the sender, which ends the wait with an error; that is the signal.
            // Only a single waiting copy wins the next round; the other copies wait for it in turn.
            let _ = finished.changed().await;
        }
    }

    fn try_enter(&self, key: MessageKey) -> Result<Admission<'_>, watch::Receiver<()>> {
        let mut state = self.lock();
        if state.handled.contains(&key) || state.handled_before.contains(&key) {
            return Ok(Admission::Duplicate);
        }
        match state.in_flight.entry(key) {
            Entry::Occupied(mut running) => {
                // Most messages have no second copy in flight, so the channel is not created before one comes.
                let finished = running.get_mut().get_or_insert_with(|| watch::Sender::new(()));
                Err(finished.subscribe())
            }
            Entry::Vacant(free) => {
                free.insert(None);
                Ok(Admission::New(InFlightGuard {
                    window: self,
                    key,
                    is_handled: false,
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DedupState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightGuard<'_> {
    /// Records the verdict. Only an acknowledged message enters the window: a message that is to be
    /// retried must be handled again, and a dead letter may be sent again by its operator.
    pub(super) fn settle(mut self, verdict: &Disposition) {
        self.is_handled = *verdict == Disposition::Ack;
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        // Both changes happen under one lock. If the key left `in_flight` first, a waiting copy could be
        // admitted as new before the key stands in `handled`.
        let mut state = self.window.lock();
        if self.is_handled {
            state.insert(self.key);
        }
        state.in_flight.remove(&self.key);
    }
}

impl DedupState {
    fn insert(&mut self, key: MessageKey) {
        if self.handled.len() == GENERATION {
            // Swapping keeps the allocations of both sets.
            std::mem::swap(&mut self.handled, &mut self.handled_before);
            self.handled.clear();
        }
        self.handled.insert(key);
    }
}
