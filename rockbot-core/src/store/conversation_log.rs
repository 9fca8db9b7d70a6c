//! The conversation log: all entries of all sessions, for components that learn from them later.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::per_principal::PerPrincipal;
use crate::chat::Role;
use crate::shared::share;
use crate::trust::{Label, Trust};
use crate::{Principal, SessionId, Timestamp};

/// An append-only log of conversations with committed reader positions.
///
/// A host that has a log appends the entries of every turn, whatever its origin, before the reply
/// is sent. A turn that a crash interrupts at that point may be logged twice.
#[async_trait]
pub trait ConversationLog: fmt::Debug + Send + Sync + 'static {
    /// Appends entries, all of them or none.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be written.
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError>;

    /// Returns the next `limit` entries for `reader`, from its committed position; a new reader
    /// starts at the oldest entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be read.
    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError>;

    /// Commits `offset` as the position of `reader`. A position never moves backwards or beyond the
    /// end: such commits are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the position cannot be written.
    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError>;

    /// Removes the entries before `offset`, read or not. Entries appended since are kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be written.
    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError>;
}

share! {
    ConversationLog {
        async append<'a>(principal: &'a Principal, entries: Vec<LogEntry>) -> Result<(), StoreError>;
        async read<'a, 'b>(principal: &'a Principal, reader: &'b str, limit: usize) -> Result<LogBatch, StoreError>;
        async commit<'a, 'b>(principal: &'a Principal, reader: &'b str, offset: LogOffset) -> Result<(), StoreError>;
        async trim<'a>(principal: &'a Principal, offset: LogOffset) -> Result<(), StoreError>;
    }
}

/// An entry of the conversation log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LogEntry {
    /// Session of the entry.
    pub session_id: SessionId,
    /// Role of the speaker.
    pub role: Role,
    /// Text of the entry.
    pub content: String,
    /// Time of the entry.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
    /// Label of the text's sources. The sources of an answer are all that its model had read.
    /// Unknown, and so untrusted, for entries without a label, as older versions wrote them.
    #[serde(default, skip_serializing_if = "Label::is_unknown")]
    pub label: Label,
    /// Trust in the sender of the turn that the entry is from. Untrusted by default.
    #[serde(default, skip_serializing_if = "is_untrusted")]
    pub trust: Trust,
}

impl LogEntry {
    /// Creates the entry of a text that was said in a session, of unknown label and by an untrusted
    /// sender.
    ///
    /// ```
    /// use rockbot_core::chat::Role;
    /// use rockbot_core::store::LogEntry;
    /// use rockbot_core::trust::{Label, Trust};
    /// use rockbot_core::Timestamp;
    ///
    /// let now = Timestamp::from_millis(1_767_225_600_000);
    /// let answer = LogEntry::new("session-1", Role::Assistant, "It says that Ada is ill.", now)
    ///     .with_label(Label::untrusted("tool:mail"))
    ///     .with_trust(Trust::User);
    /// assert!(answer.label.is_untrusted());
    /// ```
    pub fn new(session_id: impl Into<SessionId>, role: Role, content: impl Into<String>, timestamp: Timestamp) -> Self {
        Self {
            session_id: session_id.into(),
            role,
            content: content.into(),
            timestamp,
            label: Label::UNKNOWN,
            trust: Trust::Untrusted,
        }
    }

    /// Sets the label of the text's sources. Default unknown.
    #[must_use]
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = label;
        self
    }

    /// Sets the trust in the sender of the turn. Default [`Trust::Untrusted`].
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }
}

/// Returns `true` for the trust that an entry without one has.
fn is_untrusted(trust: &Trust) -> bool {
    *trust == Trust::Untrusted
}

/// A position in a log: the number of entries that were ever appended before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogOffset(pub u64);

/// A batch of log entries, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LogBatch {
    /// Entries of the batch; empty if the reader has read all.
    pub entries: Vec<LogEntry>,
    /// Position to commit once the batch is processed.
    pub next: LogOffset,
}

impl LogBatch {
    /// Creates a batch. A reader commits `next` after it.
    pub fn new(entries: Vec<LogEntry>, next: LogOffset) -> Self {
        Self { entries, next }
    }
}

/// Maximum number of entries of a principal that are kept in memory.
const MAX_KEPT: usize = 10_000;

/// A [`ConversationLog`] in memory, lost when the process ends.
///
/// Keeps the newest 10 000 entries of each principal and drops older entries, read or not.
#[derive(Debug, Default)]
pub struct InMemoryConversationLog {
    logs: PerPrincipal<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<LogEntry>,
    /// Number of removed entries: the offset of the first entry that is left.
    start: u64,
    readers: BTreeMap<String, u64>,
}

impl Log {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Returns the number of remaining entries before `offset`.
    fn index(&self, offset: u64) -> usize {
        let index = offset.clamp(self.start, self.end()) - self.start;
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    fn append(&mut self, entries: Vec<LogEntry>) {
        self.entries.extend(entries);
        self.trim(self.end().saturating_sub(MAX_KEPT as u64));
    }

    fn read(&self, reader: &str, limit: usize) -> LogBatch {
        let committed = self.readers.get(reader).copied().unwrap_or_default();
        let from = self.index(committed);
        let entries: Vec<_> = self.entries.iter().skip(from).take(limit).cloned().collect();
        let next = self.start + (from + entries.len()) as u64;
        LogBatch {
            entries,
            next: LogOffset(next),
        }
    }

    fn commit(&mut self, reader: &str, offset: u64) {
        if offset <= self.end() {
            let position = self.readers.entry(reader.to_owned()).or_default();
            *position = offset.max(*position);
        }
    }

    fn trim(&mut self, offset: u64) {
        let forgotten = self.index(offset);
        self.entries.drain(..forgotten);
        self.start += forgotten as u64;
    }
}

impl InMemoryConversationLog {
    /// Creates an empty log.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ConversationLog for InMemoryConversationLog {
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        self.logs.write(principal, |log| log.append(entries));
        Ok(())
    }

    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError> {
        Ok(self.logs.read(principal, |log| log.read(reader, limit)))
    }

    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        self.logs.write(principal, |log| log.commit(reader, offset.0));
        Ok(())
    }

    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError> {
        self.logs.write(principal, |log| log.trim(offset.0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_conversation_log() {
        conformance::conversation_log(async || InMemoryConversationLog::new()).await;
    }

    #[tokio::test]
    async fn a_full_log_forgets_the_oldest_entries() {
        let me = Principal::default();
        let log = InMemoryConversationLog::new();
        let entry = |content: String| LogEntry::new("s", Role::User, content, Timestamp::default());
        for number in 0..MAX_KEPT + 2 {
            log.append(&me, vec![entry(number.to_string())]).await.unwrap();
        }
        let batch = log.read(&me, "reader", 1).await.unwrap();
        let expected = LogBatch {
            entries: vec![entry("2".to_owned())],
            next: LogOffset(3),
        };
        assert_eq!(batch, expected);
    }
}
