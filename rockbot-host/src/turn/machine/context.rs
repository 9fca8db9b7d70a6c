//! Changes of the conversation by others than the model: entries of context sources, edits of
//! history processors.

use std::sync::Arc;

use rockbot_core::chat::ChatMessage;

use super::{Phase, Turn};
use crate::turn::history::{self, HistoryEdit};
use crate::turn::step::Purpose;

impl Turn {
    /// Inserts the entries of context sources before the host's last message.
    ///
    /// That message is the instruction for the model to react to, so it stays last.
    pub(super) fn apply_gathered(&mut self, message: Option<&ChatMessage>) {
        if let Some(message) = message {
            self.label.join(&message.label());
            let last = match self.phase {
                // The instruction comes with the question, once the loop policies have decided.
                Phase::Consulting(_) => self.messages.len(),
                _ => self.messages.len().saturating_sub(1),
            };
            self.messages.insert(last, Arc::new(message.clone()));
        }
    }

    /// Replaces the conversation by the result of the history processors.
    pub(super) fn apply_edits(&mut self, edits: &[HistoryEdit]) {
        self.context_len = history::apply(&mut self.messages, self.context_len, edits);
        self.has_edits = true;
        for edit in edits {
            if let HistoryEdit::Add(message) = edit {
                self.label.join(&message.label());
            }
        }
    }

    /// Reports whether the history processors are to see the conversation before a question for
    /// `purpose`: not when they have edited it for this question already, before a crash.
    pub(crate) fn may_be_edited(&self, purpose: &Purpose) -> bool {
        !self.has_edits && !purpose.is_out_of_band()
    }
}
