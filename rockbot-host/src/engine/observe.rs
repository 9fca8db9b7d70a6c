//! Notification of turn observers.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, ContextReason, Provenance, Role};
use rockbot_core::support::caught;
use rockbot_core::turn::{EndedTurn, TurnOutcome};

use super::TurnEngine;
use crate::turn::Turn;

impl TurnEngine {
    /// Notifies all observers that a turn has ended. An observer is the user's code: its panic is
    /// logged.
    pub(super) fn observe(&self, turn: &Turn, outcome: &TurnOutcome) {
        if self.observers.is_empty() {
            // Checked first: searching for the previous answer is only worth it for a reader.
            return;
        }
        let previous = previous_answer(turn.messages());
        let ended = EndedTurn::new(turn.request(), outcome, self.clock.now()).after(previous.as_deref());
        for observer in &self.observers {
            if caught(catch_unwind(AssertUnwindSafe(|| observer.ended(&ended)))).is_err() {
                tracing::error!(turn = %turn.id(), ?observer, "turn observer panicked; the turn is not affected");
            }
        }
    }
}

/// Returns the model's last answer before the turn. A text of the host in its place does not count.
fn previous_answer(messages: &[Arc<ChatMessage>]) -> Option<Cow<'_, str>> {
    let is_answer = |message: &&Arc<ChatMessage>| {
        message.role == Role::Assistant
            && message.tool_calls.is_empty()
            && !message.is_error
            && message.why() == ContextReason::History
            && message
                .content
                .parts()
                .iter()
                .all(|part| part.provenance().source != Provenance::HOST.source)
    };
    messages.iter().rev().find(is_answer).map(|message| message.text())
}
