//! Observers of turns that have ended.

use std::fmt;

use super::{TurnOutcome, TurnRequest};
use crate::Timestamp;
use crate::context::Origin;

/// An observer of every turn of a host that has ended, whatever its origin.
///
/// The observer is notified once the reply is sent. A message that joined a running turn is part
/// of that turn. A turn that a crash interrupts at its very end may be reported twice, or never.
/// An observer must not block: it leaves work that takes time to a task of its own. A panic of an
/// observer is contained and affects neither the turn nor the host.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use rockbot_core::turn::{EndedTurn, TurnObserver};
///
/// /// Counts answers.
/// #[derive(Debug, Default)]
/// struct Answers(AtomicU64);
///
/// impl TurnObserver for Answers {
///     fn ended(&self, turn: &EndedTurn<'_>) {
///         self.0.fetch_add(u64::from(turn.outcome.is_answer()), Ordering::Relaxed);
///     }
/// }
/// ```
pub trait TurnObserver: fmt::Debug + Send + Sync + 'static {
    /// Receives a turn that has ended. Called from the turn's own task, so it must not block.
    fn ended(&self, turn: &EndedTurn<'_>);
}

impl<Shared: TurnObserver + ?Sized> TurnObserver for std::sync::Arc<Shared> {
    fn ended(&self, turn: &EndedTurn<'_>) {
        (**self).ended(turn);
    }
}

/// A turn that has ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EndedTurn<'a> {
    /// Message that started the turn.
    pub request: &'a TurnRequest,
    /// Outcome of the turn.
    pub outcome: &'a TurnOutcome,
    /// Answer of the agent before this turn, as far as the model was shown it.
    pub previous_answer: Option<&'a str>,
    /// Time of the end.
    pub at: Timestamp,
}

impl<'a> EndedTurn<'a> {
    /// Creates a turn that ended at `at`, the first of its session.
    pub fn new(request: &'a TurnRequest, outcome: &'a TurnOutcome, at: Timestamp) -> Self {
        Self {
            request,
            outcome,
            previous_answer: None,
            at,
        }
    }

    /// Sets the answer before this turn.
    #[must_use]
    pub fn after(mut self, answer: Option<&'a str>) -> Self {
        self.previous_answer = answer;
        self
    }

    /// Returns `true` if the message came from a person or from a program that speaks for one, not
    /// from a schedule or another turn.
    pub fn is_of_a_person(&self) -> bool {
        self.request.parent.is_none() && matches!(self.request.origin, Origin::User | Origin::Bus)
    }
}
