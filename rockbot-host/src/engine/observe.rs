//! Telling those who look at turns that have ended.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, ContextReason, Provenance, Role};
use rockbot_core::turn::{EndedTurn, TurnOutcome};

use super::TurnEngine;
use crate::turn::Turn;

impl TurnEngine {
    /// Tells all observers of a turn's end. They are users' code.
    pub(super) fn observe(&self, turn: &Turn, outcome: &TurnOutcome) {
        if self.observers.is_empty() {
            return;
        }
        let previous = previous_answer(turn.messages());
        let ended = EndedTurn::new(turn.request(), outcome, self.clock.now()).after(previous.as_deref());
        for observer in &self.observers {
            if catch_unwind(AssertUnwindSafe(|| observer.ended(&ended))).is_err() {
                tracing::error!(turn = %turn.id(), ?observer, "an observer of turns panicked");
            }
        }
    }
}

/// What the model said last before the turn; words of the host that stand in its place are not its own.
fn previous_answer(messages: &[Arc<ChatMessage>]) -> Option<Cow<'_, str>> {
    let is_answer = |message: &&Arc<ChatMessage>| {
        message.role == Role::Assistant
            && message.why() == ContextReason::History
            && message.content.iter().all(|part| part.provenance == Provenance::MODEL)
    };
    messages.iter().rev().find(is_answer).map(|message| message.text())
}
