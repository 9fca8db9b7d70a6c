//! An outbox for entries that the conversation memory refuses: they wait in the turn journal and
//! are written later.
//!
//! A turn that was answered belongs to its conversation, whatever the store does at that moment.
//! Entries that the conversation memory does not take become a run of the journal (a
//! transactional outbox). They are written before their conversation is next read or appended to,
//! every 15 seconds, and at the next start, in the order of the turns, and are shown meanwhile.
//! Appending is idempotent by turn, so a crash between the write and the end of the run repeats
//! nothing.
//!
//! The entries of at most 1 024 turns wait; while any entries wait, the host is not ready. If the
//! journal does not take them either, the turn stays unfinished and ends once more.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt;
use rockbot_core::store::{
    ConversationMemory, ConversationPage, ConversationQuery, ConversationTurn, StoreError, StoreErrorKind,
};
use rockbot_core::support::{caught, loggable};
use rockbot_core::turn::{JournalError, TurnJournal};
use rockbot_core::{Principal, SessionId, TurnId};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::waiting_runs::WaitingRuns;

/// Maximum number of turns whose entries wait. The entries of further turns are lost, which is
/// logged.
const MAX_WAITING: usize = 1024;

/// Beginning of the ids of runs that hold entries. No id of a turn has it: ids of turns are
/// hexadecimal digits.
const PREFIX: &str = "entries-of-";

/// A conversation memory whose refused entries wait in the turn journal.
pub(crate) struct ConversationOutbox {
    memory: Arc<dyn ConversationMemory>,
    runs: WaitingRuns,
    waiting: Mutex<BTreeMap<Conversation, Vec<TurnId>>>,
    /// Held while entries that waited are written, so that they keep their order. A tokio mutex,
    /// because the memory and the journal are written under it.
    writing: tokio::sync::Mutex<()>,
}

type Conversation = (Principal, SessionId);

/// The place of the entries of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// They are in the conversation memory.
    InMemory,
    /// They wait in the journal.
    InJournal,
}

/// The body of a run that holds entries.
#[derive(Debug, Serialize, Deserialize)]
struct WaitingEntries {
    entries: Vec<ConversationTurn>,
}

impl ConversationOutbox {
    /// Creates an outbox in front of `memory`; `owner` is the name of this process in the journal.
    pub(crate) fn new(memory: Arc<dyn ConversationMemory>, journal: Arc<dyn TurnJournal>, owner: String) -> Self {
        Self {
            memory,
            runs: WaitingRuns::new(journal, owner, PREFIX),
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns `true` for the id of a run that holds entries: it is no turn.
    pub(crate) fn holds(run: &TurnId) -> bool {
        run.as_str().starts_with(PREFIX)
    }

    /// Returns the number of turns whose entries wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    /// Returns a description of the problem while entries wait.
    pub(crate) fn problem(&self) -> Option<String> {
        let waiting = self.waiting();
        let problem = || format!("{waiting} turns wait for their conversations, whose memory fails; see the log");
        (waiting > 0).then(problem)
    }

    /// Appends the entries of a turn. Entries that the memory does not take wait in the journal.
    ///
    /// # Errors
    ///
    /// Returns an error if neither takes them.
    pub(crate) async fn append_turn(
        &self,
        (principal, session): (&Principal, &SessionId),
        turn: &TurnId,
        entries: impl Fn() -> Vec<ConversationTurn>,
    ) -> Result<Kept, StoreError> {
        let appended = match self.write_waiting(principal, session).await {
            Ok(()) => self.append_to_memory(principal, session, entries()).await,
            // Behind the entries that wait: a conversation is read in the order of its writing.
            waits => waits,
        };
        let Err(error) = appended else {
            return Ok(Kept::InMemory);
        };
        // Boxed: every turn's future would have room for it otherwise.
        Box::pin(self.keep((principal, session), turn, entries())).await?;
        tracing::error!(%turn, error = %loggable(&error.to_string()), "conversation memory unavailable; the turn waits in the journal for its conversation");
        Ok(Kept::InJournal)
    }

    /// Takes over the runs that an earlier process, or an earlier attempt, has left, and writes the
    /// entries that can be written.
    pub(crate) async fn resume(&self, runs: Vec<TurnId>) {
        for run in runs {
            match self.runs.read::<IgnoredAny>(&run).await {
                Ok(Some(stored)) => self.note(&(stored.principal, stored.session), &run),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%run, error = %loggable(&error.to_string()), "journal unreadable; entries of a conversation wait");
                }
            }
        }
        self.write_all().await;
    }

    async fn write_all(&self) {
        let conversations: Vec<_> = self.lock().keys().cloned().collect();
        for (principal, session) in conversations {
            if let Err(error) = self.write_waiting(&principal, &session).await {
                tracing::warn!(error = %loggable(&error.to_string()), "conversation memory unavailable; entries wait in the journal");
            }
        }
    }

    /// Writes the entries of a conversation that wait, in order.
    async fn write_waiting(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        // Looked at without a key of its own: hardly ever does anything wait, and this is on the path of
        // each turn.
        if self.lock().is_empty() {
            return Ok(());
        }
        // Boxed: every turn's future would have room for it otherwise.
        Box::pin(self.write_runs(&(principal.clone(), session.clone()))).await
    }

    async fn write_runs(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let (principal, session) = conversation;
        let _writing = self.writing.lock().await;
        for run in self.runs_of(conversation) {
            if let Some(entries) = self.entries_of(&run).await? {
                self.append_to_memory(principal, session, entries).await?;
                self.finish(&run).await?;
            }
            self.forget(conversation, &run);
        }
        Ok(())
    }

    /// Appends to the memory. It is the user's code: its panic is an error.
    async fn append_to_memory(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let appending = AssertUnwindSafe(self.memory.append(principal, session, entries)).catch_unwind();
        caught(appending.await).unwrap_or_else(|panic| {
            let panicked = format!("the conversation memory panicked: {panic}");
            Err(StoreError::new(StoreErrorKind::Io, panicked))
        })
    }

    /// Keeps entries in the journal.
    async fn keep(
        &self,
        (principal, session): (&Principal, &SessionId),
        turn: &TurnId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        if self.waiting() >= MAX_WAITING {
            let full = format!("{MAX_WAITING} turns wait for the conversation memory already: repair it");
            return Err(StoreError::new(StoreErrorKind::Full, full));
        }
        let at = entries.last().map(|entry| entry.timestamp).unwrap_or_default();
        let keeping = self
            .runs
            .keep((principal, session), turn.as_str(), at, WaitingEntries { entries });
        // Without a run, they were written by an earlier end of the same turn.
        if let Some(run) = keeping.await.map_err(unusable)? {
            self.note(&(principal.clone(), session.clone()), &run);
        }
        Ok(())
    }

    /// Returns the entries of a run; `None` if they were written.
    async fn entries_of(&self, run: &TurnId) -> Result<Option<Vec<ConversationTurn>>, StoreError> {
        let Some(stored) = self.runs.read::<WaitingEntries>(run).await.map_err(unusable)? else {
            return Ok(None);
        };
        match stored.content {
            Ok(waiting) => Ok(Some(waiting.entries)),
            Err(error) => {
                // It would keep all later runs of the conversation waiting.
                tracing::error!(%run, %error, "entries in the journal are unreadable; they are missing from their conversation");
                self.finish(run).await.map(|()| None)
            }
        }
    }

    async fn finish(&self, run: &TurnId) -> Result<(), StoreError> {
        self.runs.finish(run).await.map_err(unusable)
    }

    /// Removes the entries of a conversation that wait: it was cleared.
    async fn discard(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        for run in self.runs_of(conversation) {
            self.finish(&run).await?;
            self.forget(conversation, &run);
        }
        Ok(())
    }

    fn note(&self, conversation: &Conversation, run: &TurnId) {
        let mut waiting = self.lock();
        let runs = waiting.entry(conversation.clone()).or_default();
        if !runs.contains(run) {
            runs.push(run.clone());
        }
    }

    fn forget(&self, conversation: &Conversation, run: &TurnId) {
        let mut waiting = self.lock();
        if let Some(runs) = waiting.get_mut(conversation) {
            runs.retain(|known| known != run);
        }
        waiting.retain(|_, runs| !runs.is_empty());
    }

    fn runs_of(&self, conversation: &Conversation) -> Vec<TurnId> {
        self.lock().get(conversation).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Conversation, Vec<TurnId>>> {
        // No code that can panic runs under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ConversationMemory for ConversationOutbox {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        self.write_waiting(principal, session).await?;
        self.memory.append(principal, session, entries).await
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let written = self.write_waiting(principal, session).await;
        let mut recent = self.memory.recent(principal, session, limit).await?;
        if written.is_err() {
            // Shown all the same: the conversation shows all that really happened.
            for run in self.runs_of(&(principal.clone(), session.clone())) {
                let entries = self.entries_of(&run).await?.unwrap_or_default();
                let is_new = |entry: &ConversationTurn| !recent.iter().any(|known| known.turn == entry.turn);
                let entries: Vec<_> = entries.into_iter().filter(is_new).collect();
                recent.extend(entries);
            }
            recent.drain(..recent.len().saturating_sub(limit));
        }
        Ok(recent)
    }

    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        if self.write_waiting(principal, session).await.is_ok() {
            return self.memory.page(principal, session, query).await;
        }
        let entries = self.recent(principal, session, usize::MAX).await?;
        Ok(query.select(entries.iter().rev()))
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.memory.clear(principal, session).await?;
        if self.waiting() == 0 {
            return Ok(());
        }
        self.discard(&(principal.clone(), session.clone())).await
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let mut sessions = self.memory.sessions(principal).await?;
        let waiting = self.lock();
        let waiting = waiting.keys().filter(|(owner, _)| owner == principal);
        let new: Vec<_> = waiting
            .map(|(_, session)| session)
            .filter(|session| !sessions.contains(session))
            .cloned()
            .collect();
        if !new.is_empty() {
            sessions.extend(new);
            sessions.sort();
        }
        Ok(sessions)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.write_all().await;
        self.memory.flush().await
    }
}

impl fmt::Debug for ConversationOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationOutbox")
            .field("memory", &self.memory)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

fn unusable(error: JournalError) -> StoreError {
    let kind = match &error {
        JournalError::Store(error) => error.kind(),
        _ => StoreErrorKind::Io,
    };
    StoreError::new(kind, "entries of a conversation cannot wait in the journal").with_cause(error)
}
