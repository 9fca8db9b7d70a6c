//! Conversation memory: the last turns of each session.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::per_principal::PerPrincipal;
use crate::chat::Role;
use crate::{BoxError, Principal, SessionId, Timestamp, TurnId};

/// Remembers what was said in each session: a window of its last entries.
#[async_trait]
pub trait ConversationMemory: fmt::Debug + Send + Sync + 'static {
    /// Adds `entries`, in order. Entries of a turn that is there already are not added again.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError>;

    /// The last `limit` entries of a session, oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError>;

    /// Forgets a session.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError>;

    /// The sessions of `principal`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError>;
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationTurn {
    /// Who spoke; [`Role::System`] is the host, about a request that was not answered.
    pub role: Role,
    /// What.
    pub content: String,
    /// When.
    pub timestamp: Timestamp,
    /// In which turn of the engine.
    pub turn: TurnId,
}

/// A store that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{context}: {source}")]
pub struct StoreError {
    /// What was tried, and what to do.
    pub context: String,
    /// What the system said.
    pub source: BoxError,
}

/// How many entries a session keeps by default.
const WINDOW: usize = 50;

/// Conversation memory of a process: gone when it ends.
#[derive(Debug)]
pub struct InMemoryConversationMemory {
    window: usize,
    sessions: PerPrincipal<BTreeMap<SessionId, VecDeque<ConversationTurn>>>,
}

impl Default for InMemoryConversationMemory {
    fn default() -> Self {
        Self::with_window(WINDOW)
    }
}

impl InMemoryConversationMemory {
    /// A memory that keeps the last 50 entries of each session.
    pub fn new() -> Self {
        Self::default()
    }

    /// A memory that keeps the last `window` entries of each session.
    pub fn with_window(window: usize) -> Self {
        Self {
            window,
            sessions: PerPrincipal::default(),
        }
    }
}

#[async_trait]
impl ConversationMemory for InMemoryConversationMemory {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        self.sessions.write(principal, |sessions| {
            let turns = sessions.entry(session.clone()).or_default();
            let is_new = |entry: &ConversationTurn| !turns.iter().any(|known| known.turn == entry.turn);
            let entries: Vec<_> = entries.into_iter().filter(is_new).collect();
            turns.extend(entries);
            let excess = turns.len().saturating_sub(self.window);
            turns.drain(..excess);
        });
        Ok(())
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        Ok(self.sessions.read(principal, |sessions| {
            let last = |turns: &VecDeque<_>| turns.range(turns.len().saturating_sub(limit)..).cloned().collect();
            sessions.get(session).map(last).unwrap_or_default()
        }))
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.sessions
            .write(principal, |sessions| drop(sessions.remove(session)));
        Ok(())
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(self
            .sessions
            .read(principal, |sessions| sessions.keys().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    fn entry(turn: &str) -> ConversationTurn {
        ConversationTurn {
            role: Role::User,
            content: turn.to_owned(),
            timestamp: Timestamp::default(),
            turn: turn.into(),
        }
    }

    #[tokio::test]
    async fn keeps_the_promises_of_a_conversation_memory() {
        conformance::conversation_memory(async || InMemoryConversationMemory::new()).await;
    }

    #[tokio::test]
    async fn a_full_window_drops_the_oldest_entries() {
        let memory = InMemoryConversationMemory::with_window(2);
        let (me, session) = (Principal::default(), SessionId::from("session"));
        let entries = ["a", "b", "c"].map(entry).to_vec();
        memory.append(&me, &session, entries).await.unwrap();
        assert_eq!(memory.recent(&me, &session, 10).await.unwrap(), ["b", "c"].map(entry));
    }
}
