//! The conversation log as passes read it: messages of the user alone, from the position that a
//! pass has reached.

use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::chat::Role;
use rockbot_core::content::Provenance;
use rockbot_core::store::{LogEntry, LogOffset, StoreError};
use rockbot_core::trust::Trust;

use super::super::ask::Item;
use super::super::pass_context::PassContext;

/// Maximum number of entries that a pass reads in one cycle.
pub(super) const MAX_ENTRIES: usize = 200;

/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 400;

/// New messages of the user.
pub(super) struct Said {
    pub(super) messages: Vec<LogEntry>,
    /// `true` if there is no room for more messages: a pass that waits for further messages would
    /// wait for ever.
    pub(super) is_full: bool,
    reader: String,
    next: LogOffset,
    /// Times of all entries that were read, in order.
    times: Vec<Timestamp>,
}

impl Said {
    /// Reads the messages of the user since the last run of the pass, in at most `max` entries.
    /// Returns `None` without a log, or without a new message.
    ///
    /// Answers of the agent are left out: they state the model's view, not the user's wishes.
    pub(super) async fn since_last_time(cx: &mut PassContext<'_>, max: usize) -> Result<Option<Self>, StoreError> {
        let Some(log) = &cx.stores.log else {
            return Ok(None);
        };
        let reader = format!("dreams-{}", cx.pass);
        let batch = log.read(cx.who, &reader, max).await?;
        let is_full = batch.entries.len() >= max;
        let times = batch.entries.iter().map(|entry| entry.timestamp).collect();
        let is_of_user = |entry: &LogEntry| entry.role == Role::User && entry.trust >= Trust::User;
        let messages: Vec<_> = batch.entries.into_iter().filter(is_of_user).collect();
        let said = Self {
            messages,
            reader,
            next: batch.next,
            is_full,
            times,
        };
        if said.messages.is_empty() {
            said.read(cx);
            return Ok(None);
        }
        Ok(Some(said))
    }

    /// Returns the messages as texts of a question, each with its number and its session.
    pub(super) fn items(&self) -> Vec<Item> {
        let item = |(number, entry): (usize, &LogEntry)| {
            let text: String = entry.content.chars().take(MAX_MESSAGE).collect();
            Item {
                id: format!("s{}", number + 1),
                text: format!("(session {}) {text}", entry.session_id),
                from: Provenance::labelled("user", &entry.label),
            }
        };
        self.messages.iter().enumerate().map(item).collect()
    }

    /// Marks the messages as read, once the plans of the pass are stored. Later messages stay
    /// unread.
    pub(super) fn read(self, cx: &mut PassContext<'_>) {
        cx.outcome.read.push((self.reader, self.next));
    }

    /// Returns `true` if the oldest message is at least this old, or there is no room for more
    /// messages: a pass that looks for repetition waits for that.
    pub(super) fn is_worth_a_look(&self, now: Timestamp, age: Duration) -> bool {
        self.is_full || self.times.first().is_some_and(|oldest| now.since(*oldest) >= age)
    }

    /// Marks the older half of the messages as read if the model's answer about them could not be
    /// used. With the same messages it would be the same in each cycle, and no later message would
    /// ever be read.
    pub(super) fn go_on(self, cx: &mut PassContext<'_>) {
        if cx.outcome.has_unusable_answer {
            self.read_older_half(cx);
        }
    }

    /// Marks the older half of the messages as read: the newer half comes again, with the messages
    /// that follow it.
    pub(super) fn read_older_half(self, cx: &mut PassContext<'_>) {
        let left = self.times.len() / 2;
        let next = LogOffset(self.next.0.saturating_sub(left as u64));
        cx.outcome.read.push((self.reader, next));
    }
}
