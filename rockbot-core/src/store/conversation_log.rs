//! The conversation log: everything that was said, in all sessions, for those who learn from it afterwards.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::per_principal::PerPrincipal;
use crate::chat::Role;
use crate::{Principal, SessionId, Timestamp};

/// Remembers what was said, in the order in which it was said.
///
/// Each reader has a position of its own, which moves only when it says that it is done: a reader that fails
/// reads the same entries again, and one reader takes nothing away from another.
///
/// A host that has a log adds what was said in every turn, whatever door its message came through, before the reply goes
/// out. A turn that a crash interrupts just then may stand in it twice.
#[async_trait]
pub trait ConversationLog: fmt::Debug + Send + Sync + 'static {
    /// Adds entries at the end, all together.
    ///
    /// # Errors
    ///
    /// Fails when the log cannot be written.
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError>;

    /// The next `limit` entries for `reader`, from where it last committed; a new reader starts at the oldest.
    ///
    /// # Errors
    ///
    /// Fails when the log cannot be read.
    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError>;

    /// Moves `reader` forward to `offset`. Moving backwards, or beyond the end, does nothing.
    ///
    /// # Errors
    ///
    /// Fails when the position cannot be written.
    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError>;

    /// Forgets the entries before `offset`, read or not. What was appended since stays.
    ///
    /// # Errors
    ///
    /// Fails when the log cannot be written.
    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError>;
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// In which conversation.
    pub session_id: SessionId,
    /// Who spoke.
    pub role: Role,
    /// What.
    pub content: String,
    /// When.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

/// A position in a log: how many entries were ever appended before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogOffset(pub u64);

/// Some entries of a log, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogBatch {
    /// The entries; none when the reader has seen all.
    pub entries: Vec<LogEntry>,
    /// What the reader commits when it is done with them.
    pub next: LogOffset,
}

/// How many entries of a principal are kept in memory.
const MOST: usize = 10_000;

/// A log of a process: gone when it ends.
///
/// It keeps the newest 10 000 entries of each principal. Older ones are forgotten, also by readers that have not seen
/// them.
#[derive(Debug, Default)]
pub struct InMemoryConversationLog {
    logs: PerPrincipal<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<LogEntry>,
    /// How many entries were forgotten: the offset of the first one that is left.
    start: u64,
    readers: BTreeMap<String, u64>,
}

impl Log {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// How many of the entries that are left come before `offset`.
    fn index(&self, offset: u64) -> usize {
        let index = offset.clamp(self.start, self.end()) - self.start;
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    fn append(&mut self, entries: Vec<LogEntry>) {
        self.entries.extend(entries);
        self.trim(self.end().saturating_sub(MOST as u64));
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
    /// A log without entries.
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
        let (me, log) = (Principal::default(), InMemoryConversationLog::new());
        let entry = |content: String| LogEntry {
            session_id: "s".into(),
            role: Role::User,
            content,
            timestamp: Timestamp::default(),
        };
        for number in 0..MOST + 2 {
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
