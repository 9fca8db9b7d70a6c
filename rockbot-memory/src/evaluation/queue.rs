//! The queue of sessions to evaluate.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::{Principal, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum number of queued sessions. Beyond it, the session that has been silent for the longest
/// time is dropped.
const MAX_SESSIONS: usize = 10_000;

/// Maximum back-off before a failed session is retried.
const MAX_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// A session of a principal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionKey {
    pub(super) principal: Principal,
    pub(super) session_id: SessionId,
}

/// A queued session, as it is stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueEntry {
    #[serde(flatten)]
    pub(super) key: SessionKey,
    /// The end of its newest known turn; there may be later ones.
    #[serde(with = "rockbot_core::rfc3339")]
    pub(super) newest_turn: Timestamp,
}

/// A session that is due for evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueSession {
    pub(super) key: SessionKey,
    /// Number of turns at that time.
    turns: u64,
}

#[derive(Debug, Default)]
pub(super) struct EvaluationQueue {
    table: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    sessions: BTreeMap<SessionKey, QueuedSession>,
    /// The file is out of date.
    is_unsaved: bool,
}

#[derive(Debug)]
struct QueuedSession {
    newest_turn: Timestamp,
    /// Number of turns seen.
    turns: u64,
    failures: u32,
    /// The end of the back-off after a failure.
    paused_until: Option<Instant>,
}

impl QueuedSession {
    fn of(newest_turn: Timestamp) -> Self {
        Self {
            newest_turn,
            turns: 0,
            failures: 0,
            paused_until: None,
        }
    }

    fn is_due(&self, now: Timestamp, idle: Duration) -> bool {
        now.since(self.newest_turn) >= idle && self.paused_until.is_none_or(|until| until <= Instant::now())
    }
}

impl EvaluationQueue {
    pub(super) fn of(entries: Vec<QueueEntry>) -> Self {
        let sessions = entries
            .into_iter()
            .map(|entry| (entry.key, QueuedSession::of(entry.newest_turn)));
        let table = QueueState {
            sessions: sessions.collect(),
            ..QueueState::default()
        };
        Self {
            table: Mutex::new(table),
            changed: Notify::new(),
        }
    }

    /// Records a turn of the session. Never blocks.
    pub(super) fn turn_ended(&self, key: SessionKey, at: Timestamp) {
        let mut table = self.lock();
        let is_new = !table.sessions.contains_key(&key);
        let session = table.sessions.entry(key).or_insert_with(|| QueuedSession::of(at));
        session.newest_turn = at;
        session.turns += 1;
        if is_new {
            table.keep(MAX_SESSIONS);
            self.change(table);
        }
    }

    /// Returns the sessions that have been silent for `idle`, the longest waiting first.
    pub(super) fn due(&self, now: Timestamp, idle: Duration) -> Vec<DueSession> {
        let table = self.lock();
        let due = table.sessions.iter().filter(|(_, session)| session.is_due(now, idle));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(_, session)| session.newest_turn);
        let due = due.into_iter().map(|(key, session)| DueSession {
            key: key.clone(),
            turns: session.turns,
        });
        due.collect()
    }

    /// Returns `true` if the session had no turn since it became due.
    pub(super) fn is_unchanged(&self, due: &DueSession) -> bool {
        self.lock().is_unchanged(due)
    }

    /// Removes an evaluated session from the queue, unless it had another turn meanwhile.
    pub(super) fn evaluated(&self, due: &DueSession) {
        let mut table = self.lock();
        if table.is_unchanged(due) {
            table.sessions.remove(&due.key);
            self.change(table);
        }
    }

    /// Records that a session had a turn which this queue did not see.
    pub(super) fn mark_active(&self, due: &DueSession, newest_turn: Timestamp) {
        if let Some(session) = self.lock().sessions.get_mut(&due.key) {
            session.newest_turn = session.newest_turn.max(newest_turn);
        }
    }

    /// Records a failure: the session is retried after `pause`, and after twice as long each time.
    pub(super) fn failed(&self, due: &DueSession, pause: Duration) {
        if let Some(session) = self.lock().sessions.get_mut(&due.key) {
            let pause = pause
                .saturating_mul(1 << session.failures.min(16))
                .min(MAX_PAUSE.max(pause));
            session.failures += 1;
            session.paused_until = Instant::now().checked_add(pause);
        }
    }

    /// Resolves when the queue has changes to save.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns all entries if the file is out of date, and marks it as up to date.
    pub(super) fn unsaved(&self) -> Option<Vec<QueueEntry>> {
        let mut table = self.lock();
        std::mem::take(&mut table.is_unsaved).then(|| {
            let entry = |(key, session): (&SessionKey, &QueuedSession)| QueueEntry {
                key: key.clone(),
                newest_turn: session.newest_turn,
            };
            table.sessions.iter().map(entry).collect()
        })
    }

    /// Triggers another save if there are unsaved changes.
    pub(super) fn save_again(&self) {
        self.changed.notify_one();
    }

    /// Marks the file as out of date, after a failed save.
    pub(super) fn not_saved(&self) {
        self.lock().is_unsaved = true;
    }

    fn change(&self, mut table: MutexGuard<'_, QueueState>) {
        table.is_unsaved = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Cannot be poisoned in practice: no code that can panic runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn is_unchanged(&self, due: &DueSession) -> bool {
        let session = self.sessions.get(&due.key);
        session.is_some_and(|session| session.turns == due.turns)
    }

    fn keep(&mut self, most: usize) {
        while self.sessions.len() > most {
            let longest = self.sessions.iter().min_by_key(|(_, session)| session.newest_turn);
            let Some(key) = longest.map(|(key, _)| key.clone()) else {
                return;
            };
            tracing::warn!(session = %key.session_id, "too many sessions wait to be evaluated: the oldest is left out");
            self.sessions.remove(&key);
        }
    }
}
