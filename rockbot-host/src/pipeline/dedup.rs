//! The messages of the last while: a bus delivers at least once, a handler runs once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{Disposition, MessageEnvelope};
use tokio::sync::watch;

/// How many messages are remembered at least, and half of how many at most.
const REMEMBERED: usize = 10_000;

/// Which messages were dealt with lately, and which are being dealt with.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// What keys are made with: secret, so that nobody can give two messages the same one.
    secrets: [RandomState; 2],
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The messages that are being handled. Whoever waits for one is told when it is over.
    running: HashMap<Key, Option<watch::Sender<()>>>,
    /// The latest messages that were dealt with.
    done: HashSet<Key>,
    /// Those before, forgotten all at once: one by one, each would be looked for in cold memory.
    done_before: HashSet<Key>,
}

/// 128 bits that stand for what makes two messages the same.
type Key = [u64; 2];

/// What is to be done with a message.
pub(super) enum Admission<'a> {
    /// It was dealt with.
    Done,
    /// It is to be handled, and nobody else handles it meanwhile.
    Mine(Ticket<'a>),
}

/// A message that is being handled. Dropped without a verdict, it is as if it had never come.
pub(super) struct Ticket<'a> {
    recent: &'a Recent,
    key: Key,
    is_done: bool,
}

impl Recent {
    /// Who sent a message and what they called it; with `whole`, also what it says and by which question, for handlers
    /// that know repetitions themselves: the sender who asks again, or says something else under the same id, gets
    /// their answer.
    pub(super) fn key(&self, envelope: &MessageEnvelope, whole: bool) -> Key {
        let question = || (&envelope.correlation_id, &envelope.reply_to, &envelope.body);
        let name = (&envelope.source, &envelope.message_id, whole.then(question));
        self.secrets.each_ref().map(|secret| secret.hash_one(name))
    }

    /// Takes up a message; waits while somebody else handles the same one.
    pub(super) async fn enter(&self, key: Key) -> Admission<'_> {
        loop {
            let mut over = match self.take(key) {
                Ok(turn) => return turn,
                Err(over) => over,
            };
            // The sender is dropped when it is over.
            let _ = over.changed().await;
        }
    }

    fn take(&self, key: Key) -> Result<Admission<'_>, watch::Receiver<()>> {
        let mut state = self.lock();
        if state.done.contains(&key) || state.done_before.contains(&key) {
            return Ok(Admission::Done);
        }
        match state.running.entry(key) {
            Entry::Occupied(mut over) => {
                let over = over.get_mut().get_or_insert_with(|| watch::Sender::new(()));
                Err(over.subscribe())
            }
            Entry::Vacant(free) => {
                free.insert(None);
                Ok(Admission::Mine(Ticket {
                    recent: self,
                    key,
                    is_done: false,
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// The message was handled; unless it is to be delivered again, it is not handled again.
    pub(super) fn settle(mut self, verdict: &Disposition) {
        self.is_done = *verdict == Disposition::Ack;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.recent.lock();
        if self.is_done {
            state.remember(self.key);
        }
        state.running.remove(&self.key);
    }
}

impl State {
    fn remember(&mut self, key: Key) {
        if self.done.len() == REMEMBERED {
            std::mem::swap(&mut self.done, &mut self.done_before);
            self.done.clear();
        }
        self.done.insert(key);
    }
}
