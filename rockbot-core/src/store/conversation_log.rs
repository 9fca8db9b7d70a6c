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

/// A log of a process: gone when it ends.
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
        self.logs.write(principal, |log| log.entries.extend(entries));
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
}
