//! The messages of the last while: a bus delivers at least once, a handler runs once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{Disposition, MessageEnvelope};
use rockbot_core::{Digest, MessageId};
use tokio::sync::watch;

/// How many messages are remembered. The oldest are forgotten first.
const REMEMBERED: usize = 10_000;

/// Which messages were dealt with lately, and which are being dealt with.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    messages: HashMap<Key, Status>,
    done: VecDeque<Key>,
}

/// What makes two messages the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    source: Arc<str>,
    message: MessageId,
    /// What was asked, and by which question, for handlers that know repetitions themselves: the sender who asks again,
    /// or says something else under the same id, gets their answer.
    question: Option<Digest>,
}

impl Key {
    /// Who sent it and what they called it; with `whole`, also what it says.
    pub(super) fn of(envelope: &MessageEnvelope, whole: bool) -> Self {
        let question = || {
            let correlation = envelope.correlation_id.as_deref().unwrap_or_default();
            let reply_to = envelope.reply_to.as_deref().unwrap_or_default();
            Digest::of([correlation.as_bytes(), reply_to.as_bytes(), &envelope.body])
        };
        Self {
            source: Arc::clone(&envelope.source),
            message: envelope.message_id.clone(),
            question: whole.then(question),
        }
    }
}

#[derive(Debug)]
enum Status {
    /// Whoever waits is told when it is over.
    Running(Option<watch::Sender<()>>),
    Done,
}

/// What is to be done with a message.
pub(super) enum Turn<'a> {
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
    /// Takes up a message; waits while somebody else handles the same one.
    pub(super) async fn enter(&self, key: Key) -> Turn<'_> {
        loop {
            let mut over = match self.take(&key) {
                Ok(turn) => return turn,
                Err(over) => over,
            };
            // The sender is dropped when it is over.
            let _ = over.changed().await;
        }
    }

    fn take(&self, key: &Key) -> Result<Turn<'_>, watch::Receiver<()>> {
        let mut state = self.lock();
        match state.messages.get_mut(key) {
            Some(Status::Done) => Ok(Turn::Done),
            Some(Status::Running(over)) => Err(over.get_or_insert_with(|| watch::Sender::new(())).subscribe()),
            None => {
                state.messages.insert(key.clone(), Status::Running(None));
                Ok(Turn::Mine(Ticket {
                    recent: self,
                    key: key.clone(),
                    is_done: false,
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        if !self.is_done {
            state.messages.remove(&self.key);
            return;
        }
        state.messages.insert(self.key.clone(), Status::Done);
        state.done.push_back(self.key.clone());
        if state.done.len() > REMEMBERED
            && let Some(oldest) = state.done.pop_front()
        {
            state.messages.remove(&oldest);
        }
    }
}
