//! Those who look at turns that have ended.

use std::fmt;

use super::{TurnOutcome, TurnRequest};
use crate::Timestamp;
use crate::context::Origin;

/// Sees every turn of a host that has ended, whatever door its message came through.
///
/// It is told once the reply is out. A message that joined a running turn is part of that one. A turn that a crash
/// interrupts at its very end may be told twice, or never. An observer must not block: what takes time it leaves to a
/// task of its own. A panic of an observer reaches nobody.
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
    /// A turn ended.
    fn ended(&self, turn: &EndedTurn<'_>);
}

/// A turn that has ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EndedTurn<'a> {
    /// The message that began it.
    pub request: &'a TurnRequest,
    /// How it ended.
    pub outcome: &'a TurnOutcome,
    /// What the agent answered before it in the conversation, as far as its model was shown that.
    pub previous_answer: Option<&'a str>,
    /// When it ended.
    pub at: Timestamp,
}

impl<'a> EndedTurn<'a> {
    /// A turn that ended at `at`, the first of its conversation.
    pub fn new(request: &'a TurnRequest, outcome: &'a TurnOutcome, at: Timestamp) -> Self {
        Self {
            request,
            outcome,
            previous_answer: None,
            at,
        }
    }

    /// After this answer.
    #[must_use]
    pub fn after(mut self, answer: Option<&'a str>) -> Self {
        self.previous_answer = answer;
        self
    }

    /// Whether a person, or a program that speaks for one, said its message: no schedule and no other turn did.
    pub fn is_of_a_person(&self) -> bool {
        self.request.parent.is_none() && matches!(self.request.origin, Origin::User | Origin::Bus)
    }
}
