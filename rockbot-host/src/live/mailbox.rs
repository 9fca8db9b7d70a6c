//! Delivery of further messages of a session to the turn that is already running in it.

use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::content::Content;
use tokio::sync::oneshot;

/// A message that is to join a running turn instead of becoming a turn of its own.
#[derive(Debug)]
pub(crate) struct SteeringMessage {
    /// The turn of the message in the journal.
    pub(crate) turn: TurnId,
    /// The content of the message, with no more trust than its sender has.
    pub(crate) content: Content,
    /// Resolves the sender's wait.
    ///
    /// A value is sent once the running turn has recorded the message; from then on both turns end
    /// alike. The sender is dropped without a value when the running turn ends first, and the message
    /// becomes a turn of its own. A closed channel means that the message was cancelled while it
    /// waited.
    pub(crate) joined: oneshot::Sender<()>,
}

/// The queue of steering messages of one turn.
///
/// Its messages count among the messages that wait in the session, see
/// [`BacklogLimits`](super::BacklogLimits).
#[derive(Debug)]
pub(crate) struct Mailbox(Mutex<Option<Pending>>);

/// The messages of an open mailbox.
#[derive(Debug, Default)]
struct Pending {
    messages: Vec<SteeringMessage>,
    /// Length of their texts in bytes.
    bytes: usize,
}

impl Default for Mailbox {
    /// Creates an open, empty mailbox.
    fn default() -> Self {
        Self(Mutex::new(Some(Pending::default())))
    }
}

impl Mailbox {
    /// Appends a message, or returns it when the mailbox is closed.
    pub(crate) fn push(&self, message: SteeringMessage) -> Result<(), SteeringMessage> {
        match &mut *self.lock() {
            Some(pending) => {
                pending.bytes += message.content.text_len();
                pending.messages.push(message);
                Ok(())
            }
            None => Err(message),
        }
    }

    /// Takes the messages that arrived since the last call, without messages that were cancelled
    /// meanwhile.
    pub(crate) fn take(&self) -> Vec<SteeringMessage> {
        let mut messages = self.lock().as_mut().map(take).unwrap_or_default().messages;
        messages.retain(|message| !message.joined.is_closed());
        messages
    }

    /// Returns the number of messages that wait, and the length of their texts in bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let pending = self.lock();
        let waiting = pending.as_ref().map(|pending| (pending.messages.len(), pending.bytes));
        waiting.unwrap_or_default()
    }

    /// Removes the messages that were cancelled.
    pub(super) fn remove_cancelled(&self) {
        if let Some(pending) = &mut *self.lock() {
            pending.messages.retain(|message| !message.joined.is_closed());
            pending.bytes = pending.messages.iter().map(|message| message.content.text_len()).sum();
        }
    }

    /// Closes the mailbox and drops its messages, which notifies their senders.
    pub(crate) fn close(&self) {
        // The messages are dropped after the lock is released: dropping a sender wakes the task that
        // waits on it.
        let closed = self.lock().take();
        drop(closed);
    }

    /// Opens the mailbox again. Does nothing when it is open.
    pub(crate) fn reopen(&self) {
        self.lock().get_or_insert_default();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Pending>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent queue.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
