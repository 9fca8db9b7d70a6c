//! The state of a live turn, as its waiting callers see it.

use std::sync::Arc;

use rockbot_core::turn::TurnOutcome;

/// The state of a live turn.
///
/// A waiter sees the newest state and may miss the states in between.
#[derive(Debug, Clone, Default)]
pub(crate) enum TurnState {
    /// The turn works, or is queued for its session.
    #[default]
    Working,
    /// The turn waits for a person's decision; the outcome lists the questions.
    Parked(Arc<TurnOutcome>),
    /// The turn ended with this outcome.
    Ended(Arc<TurnOutcome>),
    /// The host stopped first, or the journal did not take the turn's failure; the turn is resumed
    /// later.
    Halted,
}

impl TurnState {
    /// Advances to `newer` and reports whether the state changed.
    ///
    /// `Halted` is final but for the end itself: a task that is still winding down must not make a
    /// turn look alive after its host has stopped, while an end that was reached after all is worth
    /// reporting.
    pub(super) fn advance(&mut self, newer: Self) -> bool {
        let advances = !matches!(self, Self::Halted) || matches!(newer, Self::Ended(_));
        if advances {
            *self = newer;
        }
        advances
    }
}
