//! One turn at a time in a session; different sessions run side by side.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::turn::{BusyPolicy, TurnRequest};
use rockbot_core::{Principal, SessionId};
use tokio::sync::oneshot;

use crate::engine::{LiveTurn, SteeringMessage};
use crate::turn::CancelReason;

/// The sessions that have something to do.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<Key, Slot>>);

type Key = (Principal, SessionId);

/// A busy session.
#[derive(Debug)]
struct Slot {
    running: Arc<LiveTurn>,
    waiting: VecDeque<Waiting>,
}

type Waiting = (Arc<LiveTurn>, oneshot::Sender<SessionGuard>);

/// How a turn got into its session.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It can run.
    Admitted(SessionGuard),
    /// It waits; the seat comes when it is its turn.
    Waiting(oneshot::Receiver<SessionGuard>),
    /// Its message was handed to the running turn; the receiver tells whether that turn took it.
    Steered {
        running: Arc<LiveTurn>,
        taken: oneshot::Receiver<()>,
    },
}

/// The right to run in a session; dropping it lets the next turn run.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    key: Key,
}

impl Sessions {
    /// Enters the session of `turn`, in the way that `policy` says.
    pub(crate) fn enter(self: &Arc<Self>, turn: &Arc<LiveTurn>, policy: BusyPolicy) -> Admission {
        let key = key(turn.request());
        let mut slots = self.lock();
        let Some(slot) = slots.get_mut(&key) else {
            slots.insert(
                key.clone(),
                Slot {
                    running: turn.clone(),
                    waiting: VecDeque::new(),
                },
            );
            return Admission::Admitted(SessionGuard {
                sessions: self.clone(),
                key,
            });
        };
        match policy {
            BusyPolicy::Queue => slot.wait(turn, VecDeque::push_back),
            BusyPolicy::Supersede => {
                slot.supersede();
                slot.wait(turn, VecDeque::push_front)
            }
            // The running turn has one shape of answer, one tier and one budget: its own.
            BusyPolicy::Steer if has_settings(turn.request()) => slot.wait(turn, VecDeque::push_back),
            BusyPolicy::Steer => slot.say(turn),
        }
    }

    /// Lets the next turn of the session run, or forgets the session.
    fn leave(self: &Arc<Self>, key: &Key) {
        let mut slots = self.lock();
        let Some(slot) = slots.get_mut(key) else {
            return;
        };
        let Some((next, wake)) = slot.waiting.pop_front() else {
            slots.remove(key);
            return;
        };
        slot.running = next;
        drop(slots);
        // Sent without the lock: a seat that nobody takes any more is dropped here, and leaves in its turn.
        drop(wake.send(SessionGuard {
            sessions: self.clone(),
            key: key.clone(),
        }));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Slot>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn wait(&mut self, turn: &Arc<LiveTurn>, push: impl FnOnce(&mut VecDeque<Waiting>, Waiting)) -> Admission {
        let (wake, seat) = oneshot::channel();
        push(&mut self.waiting, (turn.clone(), wake));
        Admission::Waiting(seat)
    }

    /// Ends the running turn, and those that wait only to take its place.
    fn supersede(&self) {
        let waiting = self.waiting.iter().map(|(turn, _)| turn);
        let successors = waiting.filter(|turn| turn.request().busy == BusyPolicy::Supersede);
        let unwanted = successors.chain([&self.running]);
        unwanted.for_each(|turn| turn.cancel(CancelReason::Superseded));
    }

    /// Hands the message to the running turn, or waits when that one takes no more.
    fn say(&mut self, turn: &Arc<LiveTurn>) -> Admission {
        let (taken, was_taken) = oneshot::channel();
        let said = SteeringMessage {
            turn: turn.id().clone(),
            text: turn.request().text.clone(),
            taken,
        };
        match self.running.say(said) {
            Ok(()) => Admission::Steered {
                running: self.running.clone(),
                taken: was_taken,
            },
            Err(_) => self.wait(turn, VecDeque::push_back),
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.sessions.leave(&self.key);
    }
}

fn has_settings(request: &TurnRequest) -> bool {
    request.output.is_some() || request.tier.is_some() || request.budget.is_some()
}

fn key(request: &TurnRequest) -> Key {
    (request.principal.clone(), request.session.clone())
}
