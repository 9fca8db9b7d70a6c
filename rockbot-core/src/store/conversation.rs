//! Conversation memory: the last turns of each session.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{ConversationPage, ConversationQuery, ConversationTurn, StoreError};
use crate::shared::share;
use crate::{Principal, SessionId};

/// A store of conversations: a window over the last entries of each session.
#[async_trait]
pub trait ConversationMemory: fmt::Debug + Send + Sync + 'static {
    /// Appends `entries`, in order. Idempotent by turn: entries of a turn that the session holds
    /// already are skipped, so that a redelivered message leaves no duplicates.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError>;

    /// Returns the last `limit` entries of a session, oldest first.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError>;

    /// Returns a page of a session's entries. By default it is selected from all of
    /// [`recent`](Self::recent): a memory that can keep many entries overrides it, to read no more
    /// than the page.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let entries = self.recent(principal, session, usize::MAX).await?;
        Ok(query.select(entries.iter().rev()))
    }

    /// Removes all entries of a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError>;

    /// Returns the sessions of `principal`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError>;

    /// Flushes writes that are held back. The host calls it at shutdown. Does nothing by default.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

share! {
    ConversationMemory {
        async append<'a, 'b>(principal: &'a Principal, session: &'b SessionId, entries: Vec<ConversationTurn>) -> Result<(), StoreError>;
        async recent<'a, 'b>(principal: &'a Principal, session: &'b SessionId, limit: usize) -> Result<Vec<ConversationTurn>, StoreError>;
        async page<'a, 'b, 'c>(principal: &'a Principal, session: &'b SessionId, query: &'c ConversationQuery) -> Result<ConversationPage, StoreError>;
        async clear<'a, 'b>(principal: &'a Principal, session: &'b SessionId) -> Result<(), StoreError>;
        async sessions<'a>(principal: &'a Principal) -> Result<Vec<SessionId>, StoreError>;
        async flush() -> Result<(), StoreError>;
    }
}

/// Default size of the window of a session, in entries.
const WINDOW: usize = 50;

/// Default number of sessions that are kept in memory.
const SESSIONS: usize = 10_000;

/// A [`ConversationMemory`] in memory, lost when the process ends.
///
/// Keeps 10 000 sessions by default and evicts the least recently used one beyond that; reading
/// counts as use.
#[derive(Debug)]
pub struct InMemoryConversationMemory {
    window: usize,
    max_sessions: usize,
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    windows: BTreeMap<Key, Window>,
    /// Sessions by the number of their last use, the least recently used first.
    uses: BTreeMap<u64, Key>,
    last_use: u64,
}

type Key = (Principal, SessionId);

#[derive(Debug, Default)]
struct Window {
    turns: VecDeque<ConversationTurn>,
    used: u64,
}

impl Default for InMemoryConversationMemory {
    fn default() -> Self {
        Self::with_window(WINDOW)
    }
}

impl InMemoryConversationMemory {
    /// Creates a memory that keeps the last 50 entries of each session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a memory that keeps the last `window` entries of each session.
    pub fn with_window(window: usize) -> Self {
        Self {
            window,
            max_sessions: SESSIONS,
            sessions: Mutex::default(),
        }
    }

    /// Sets the maximum number of sessions. Default 10 000.
    #[must_use]
    pub fn with_sessions(mut self, most: usize) -> Self {
        self.max_sessions = most;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        // No code that can panic runs under the lock, so a poisoned lock still guards consistent data.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Marks a session as the most recently used.
    fn touch(&mut self, key: &Key) -> Option<&mut Window> {
        let window = self.windows.get_mut(key)?;
        self.uses.remove(&window.used);
        // A new window has the number 0, which no use has.
        self.last_use += 1;
        window.used = self.last_use;
        self.uses.insert(self.last_use, key.clone());
        Some(window)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(window) = self.windows.remove(key) {
            self.uses.remove(&window.used);
        }
    }

    /// Evicts the least recently used sessions beyond `max`.
    fn keep(&mut self, most: usize) {
        while self.windows.len() > most
            && let Some((_, key)) = self.uses.pop_first()
        {
            self.windows.remove(&key);
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
        let key = (principal.clone(), session.clone());
        let mut sessions = self.lock();
        sessions.windows.entry(key.clone()).or_default();
        if let Some(Window { turns, .. }) = sessions.touch(&key) {
            let is_new = |entry: &ConversationTurn| !turns.iter().any(|known| known.turn == entry.turn);
            let entries: Vec<_> = entries.into_iter().filter(is_new).collect();
            turns.extend(entries);
            let excess = turns.len().saturating_sub(self.window);
            turns.drain(..excess);
        }
        sessions.keep(self.max_sessions);
        Ok(())
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let last = |turns: &VecDeque<_>| turns.range(turns.len().saturating_sub(limit)..).cloned().collect();
        let mut sessions = self.lock();
        let window = sessions.touch(&(principal.clone(), session.clone()));
        Ok(window.map(|window| last(&window.turns)).unwrap_or_default())
    }

    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let mut sessions = self.lock();
        let window = sessions.touch(&(principal.clone(), session.clone()));
        let page = window.map(|window| query.select(window.turns.iter().rev()));
        Ok(page.unwrap_or_default())
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.lock().remove(&(principal.clone(), session.clone()));
        Ok(())
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let from = (principal.clone(), SessionId::from(""));
        let sessions = self.lock();
        let own = sessions
            .windows
            .range(from..)
            .take_while(|((owner, _), _)| owner == principal);
        Ok(own.map(|((_, session), _)| session.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::chat::Role;
    use crate::testing::conformance;

    fn entry(turn: &str) -> ConversationTurn {
        ConversationTurn::new(Role::User, turn, Timestamp::default(), turn)
    }

    #[tokio::test]
    async fn keeps_the_promises_of_a_conversation_memory() {
        conformance::conversation_memory(async || InMemoryConversationMemory::new()).await;
    }

    #[tokio::test]
    async fn a_full_window_drops_the_oldest_entries() {
        let memory = InMemoryConversationMemory::with_window(2);
        let me = Principal::default();
        let session = SessionId::from("session");
        let entries = ["a", "b", "c"].map(entry).to_vec();
        memory.append(&me, &session, entries).await.unwrap();
        assert_eq!(memory.recent(&me, &session, 10).await.unwrap(), ["b", "c"].map(entry));
    }

    #[tokio::test]
    async fn the_session_that_was_not_used_for_the_longest_time_gives_way() {
        let memory = InMemoryConversationMemory::new().with_sessions(2);
        let me = Principal::default();
        for session in ["a", "b"] {
            memory.append(&me, &session.into(), vec![entry("t")]).await.unwrap();
        }
        memory.recent(&me, &"a".into(), 1).await.unwrap();
        memory
            .append(&"other".into(), &"c".into(), vec![entry("t")])
            .await
            .unwrap();
        assert_eq!(memory.sessions(&me).await.unwrap(), ["a"]);
    }
}
