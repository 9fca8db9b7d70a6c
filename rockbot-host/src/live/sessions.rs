//! Sessions: one turn at a time in each, different sessions side by side.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::turn::{BusyPolicy, TurnRequest};
use rockbot_core::{Principal, SessionId};
use tokio::sync::oneshot;

use super::{LiveTurn, SteeringMessage};
use crate::turn::CancelReason;

/// The busy sessions of a host. A session without a turn has no entry.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionKey, BusySession>>);

type SessionKey = (Principal, SessionId);

/// A session with a running turn.
#[derive(Debug)]
struct BusySession {
    running: Arc<LiveTurn>,
    queue: VecDeque<QueuedTurn>,
}

/// A turn that waits for its session.
#[derive(Debug)]
struct QueuedTurn {
    turn: Arc<LiveTurn>,
    admit: oneshot::Sender<SessionGuard>,
}

/// The outcome of entering a session: admitted, queued, or merged into the running turn.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The session was free; the turn can run.
    Admitted(SessionGuard),
    /// The session is busy; the guard arrives when the turn is next.
    Queued(oneshot::Receiver<SessionGuard>),
    /// The message enters its session once guardrails have checked it, since it may join or replace the running turn.
    Unchecked,
    /// The message was delivered to the running turn. `joined` resolves to `Ok` when that turn records it, and to
    /// `Err` when that turn ends first.
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
    key: SessionKey,
}

impl Sessions {
    /// Enters the session of `turn`. `policy` states what happens when the session is busy.
    pub(crate) fn enter(self: &Arc<Self>, turn: &Arc<LiveTurn>, policy: BusyPolicy) -> Admission {
        let key = key(turn.request());
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(&key) else {
            sessions.insert(
                key.clone(),
                BusySession {
                    running: turn.clone(),
                    queue: VecDeque::new(),
                },
            );
            return Admission::Admitted(SessionGuard {
                sessions: self.clone(),
                key,
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

    /// Admits the next queued turn, or removes the session's entry when the queue is empty.
    fn leave(self: &Arc<Self>, key: &SessionKey) {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(key) else {
            return;
        };
        let Some(next) = session.queue.pop_front() else {
            sessions.remove(key);
            return;
        };
        session.running = next.turn;
        drop(sessions);
        // Sent after the lock is released: when the receiver is gone, the guard comes back, is dropped here, and
        // calls `leave` again for the turn after it. Under the lock that would be a deadlock.
        drop(next.admit.send(SessionGuard {
            sessions: self.clone(),
            key: key.clone(),
        }));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, BusySession>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusySession {
    fn enqueue(&mut self, turn: &Arc<LiveTurn>, push: impl FnOnce(&mut VecDeque<QueuedTurn>, QueuedTurn)) -> Admission {
        let (admit, admitted) = oneshot::channel();
        let turn = turn.clone();
        push(&mut self.queue, QueuedTurn { turn, admit });
        Admission::Queued(admitted)
    }

    /// Cancels the running turn, and the queued ones that were to supersede it themselves.
    fn supersede(&self) {
        let queued = self.queue.iter().map(|queued| &queued.turn);
        let successors = queued.filter(|turn| turn.request().busy == BusyPolicy::Supersede);
        let unwanted = successors.chain([&self.running]);
        unwanted.for_each(|turn| turn.cancel(CancelReason::Superseded));
    }

    /// Delivers the message to the running turn, or queues its turn when the running one accepts no more messages.
    fn steer(&mut self, turn: &Arc<LiveTurn>) -> Admission {
        let (sender, joined) = oneshot::channel();
        let message = SteeringMessage {
            turn: turn.id().clone(),
            content: turn.input().clone().trusted_at_most(turn.request().trust),
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
        self.sessions.leave(&self.key);
    }
}

fn key(request: &TurnRequest) -> SessionKey {
    (request.principal.clone(), request.session.clone())
}
