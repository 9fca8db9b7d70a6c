//! Sessions: one turn at a time in each, different sessions side by side.

use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::turn::{Busy, BusyPolicy, TurnRequest};
use rockbot_core::{Principal, SessionId};
use tokio::sync::futures::Notified;
use tokio::sync::oneshot;

use super::backlog::{Backlog, BacklogPermit, weight};
use super::{BacklogLimits, LiveTurn, SteeringMessage};
use crate::turn::{CancelReason, from_sender};

/// The busy sessions of a host. A session without a turn has no entry.
#[derive(Debug)]
pub(crate) struct Sessions {
    busy: Mutex<HashMap<SessionKey, BusySession>>,
    backlog: Arc<Backlog>,
}

type SessionKey = (Principal, SessionId);

/// A session with a running turn.
#[derive(Debug)]
struct BusySession {
    running: Arc<LiveTurn>,
    queue: VecDeque<QueuedTurn>,
    /// Length of the texts in the queue in bytes.
    queued_bytes: usize,
}

/// A turn that waits for its session.
#[derive(Debug)]
struct QueuedTurn {
    turn: Arc<LiveTurn>,
    /// Length of the message's texts in bytes.
    bytes: usize,
    /// Closed when the turn no longer waits: it was cancelled, or the host stops.
    admit: oneshot::Sender<SessionGuard>,
}

/// The outcome of entering a session: admitted, queued, or merged into the running turn.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The session was free; the turn can run.
    Admitted(SessionGuard),
    /// The session is busy; the guard arrives when the turn is next.
    Queued(oneshot::Receiver<SessionGuard>),
    /// The message enters its session once guardrails have checked it, since it may join or replace
    /// the running turn.
    Unchecked,
    /// The message was delivered to the running turn. `joined` resolves to `Ok` when that turn
    /// records it, and to `Err` when that turn ends first.
    Steered {
        /// The turn that runs in the session.
        running: Arc<LiveTurn>,
        /// Resolves when the running turn has recorded the message, or has ended without doing so.
        joined: oneshot::Receiver<()>,
    },
}

/// The exclusive right to run in a session. Dropping it admits the next queued turn.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    /// `None` once the session was passed on.
    key: Option<SessionKey>,
}

impl Sessions {
    /// Creates sessions that are all idle.
    pub(crate) fn new(limits: BacklogLimits) -> Arc<Self> {
        Arc::new(Self {
            busy: Mutex::default(),
            backlog: Backlog::new(limits),
        })
    }

    /// Counts a message that is to be accepted, or refuses it.
    pub(crate) fn reserve(&self, request: &TurnRequest) -> Result<BacklogPermit, Busy> {
        self.backlog
            .reserve(request, |are_removed| self.waiting_beside(request, are_removed))
    }

    /// Counts a message that was accepted before.
    pub(crate) fn count(&self, request: &TurnRequest) -> BacklogPermit {
        self.backlog.count(request)
    }

    /// Returns a future that resolves when there may be room for a message that was refused before
    /// this call.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.backlog.freed()
    }

    /// Enters the session of `turn`. `policy` states the behavior when the session is busy.
    pub(crate) fn enter(self: &Arc<Self>, turn: &Arc<LiveTurn>, policy: BusyPolicy) -> Admission {
        let key = key(turn.request());
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(&key) else {
            sessions.insert(
                key.clone(),
                BusySession {
                    running: turn.clone(),
                    queue: VecDeque::new(),
                    queued_bytes: 0,
                },
            );
            return Admission::Admitted(SessionGuard {
                sessions: self.clone(),
                key: Some(key),
            });
        };
        match policy {
            BusyPolicy::Queue => session.enqueue(turn, VecDeque::push_back),
            BusyPolicy::Supersede => {
                session.supersede();
                session.enqueue(turn, VecDeque::push_front)
            }
            // The running turn has settings of its own.
            BusyPolicy::Steer if turn.request().has_settings() => session.enqueue(turn, VecDeque::push_back),
            BusyPolicy::Steer => session.steer(turn),
        }
    }

    /// Returns the number of messages that wait in the session of `request`, and the length of
    /// their texts in bytes. Messages that were cancelled while they waited are among them unless
    /// `are_removed`, which looks at each message.
    fn waiting_beside(&self, request: &TurnRequest, are_removed: bool) -> (usize, usize) {
        let mut sessions = self.lock();
        // A session without a turn has no entry, and most hosts have no busy session.
        if sessions.is_empty() {
            return (0, 0);
        }
        let Some(session) = sessions.get_mut(&key(request)) else {
            return (0, 0);
        };
        let cancelled = if are_removed {
            session.remove_cancelled()
        } else {
            VecDeque::new()
        };
        let (messages, bytes) = session.running.mailbox().waiting();
        let waiting = (messages + session.queue.len(), bytes + session.queued_bytes);
        drop(sessions);
        // Dropped after the lock is released: a turn's sink is the caller's code.
        drop(cancelled);
        waiting
    }

    /// Admits the next queued turn that still waits, or removes the session's entry when there is
    /// no such turn.
    ///
    /// A loop, and not the drop of a guard that comes back: after thousands of cancelled turns that
    /// recursion would overflow the stack.
    fn leave(self: &Arc<Self>, mut key: SessionKey) {
        loop {
            let mut sessions = self.lock();
            let Some(session) = sessions.get_mut(&key) else {
                return;
            };
            let Some(next) = session.queue.pop_front() else {
                let left = sessions.remove(&key);
                drop(sessions);
                return drop(left);
            };
            session.queued_bytes -= next.bytes;
            let left = std::mem::replace(&mut session.running, next.turn);
            drop(sessions);
            // Dropped and sent after the lock is released: both may run code of others, which enters sessions.
            drop(left);
            let guard = SessionGuard {
                sessions: self.clone(),
                key: Some(key),
            };
            match next.admit.send(guard).map_err(|mut guard| guard.key.take()) {
                Err(Some(unused)) => key = unused,
                // One message less waits in the session.
                Ok(()) | Err(None) => return self.backlog.notify(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, BusySession>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent map.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusySession {
    /// Removes the messages that no longer wait, and returns the turns among them.
    fn remove_cancelled(&mut self) -> VecDeque<QueuedTurn> {
        self.running.mailbox().remove_cancelled();
        let is_cancelled = |queued: &QueuedTurn| queued.admit.is_closed();
        let (cancelled, waiting): (VecDeque<_>, VecDeque<_>) =
            take(&mut self.queue).into_iter().partition(is_cancelled);
        self.queue = waiting;
        self.queued_bytes = self.queue.iter().map(|queued| queued.bytes).sum();
        cancelled
    }

    fn enqueue(&mut self, turn: &Arc<LiveTurn>, push: impl FnOnce(&mut VecDeque<QueuedTurn>, QueuedTurn)) -> Admission {
        let (admit, admitted) = oneshot::channel();
        let (turn, bytes) = (turn.clone(), weight(turn.request()));
        self.queued_bytes += bytes;
        push(&mut self.queue, QueuedTurn { turn, bytes, admit });
        Admission::Queued(admitted)
    }

    /// Cancels the running turn, and the queued turns that were to supersede it themselves.
    fn supersede(&self) {
        let queued = self.queue.iter().map(|queued| &queued.turn);
        let successors = queued.filter(|turn| turn.request().busy == BusyPolicy::Supersede);
        let unwanted = successors.chain([&self.running]);
        unwanted.for_each(|turn| turn.cancel(CancelReason::Superseded));
    }

    /// Delivers the message to the running turn, or queues its turn when the running one accepts no
    /// more messages.
    fn steer(&mut self, turn: &Arc<LiveTurn>) -> Admission {
        let (sender, joined) = oneshot::channel();
        let message = SteeringMessage {
            turn: turn.id().clone(),
            content: from_sender(turn.input().clone(), turn.request()),
            joined: sender,
        };
        match self.running.mailbox().push(message) {
            Ok(()) => Admission::Steered {
                running: self.running.clone(),
                joined,
            },
            Err(_) => self.enqueue(turn, VecDeque::push_back),
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.sessions.leave(key);
        }
    }
}

fn key(request: &TurnRequest) -> SessionKey {
    (request.principal.clone(), request.session.clone())
}
