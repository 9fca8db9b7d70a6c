//! The part of an answer that is streamed before the whole answer has been parsed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::chat::{ChatDelta, DeltaSink};
use rockbot_text_calls::{HoldBack, TextAnswer, TextCallParser};

/// A sink that passes text on to the caller's sink only when no call can begin in it.
pub(super) struct FilteredDeltas {
    deltas: DeltaSink,
    hold_back: Arc<Mutex<HoldBack>>,
    parser: TextCallParser,
}

impl FilteredDeltas {
    /// Creates a filter in front of `deltas`.
    pub(super) fn new(deltas: &DeltaSink, parser: &TextCallParser) -> Self {
        Self {
            deltas: deltas.clone(),
            hold_back: Arc::new(Mutex::new(parser.hold_back())),
            parser: parser.clone(),
        }
    }

    /// Returns the sink for the wrapped client.
    pub(super) fn sink(&self) -> DeltaSink {
        let deltas = self.deltas.clone();
        let hold_back = self.hold_back.clone();
        let parser = self.parser.clone();
        DeltaSink::new(move |delta| match delta {
            ChatDelta::Text(piece) => {
                // The guard is dropped before the caller's sink runs: it is foreign code.
                let text = lock(&hold_back).push(piece);
                if !text.is_empty() {
                    deltas.send(ChatDelta::Text(&text));
                }
            }
            ChatDelta::Reset => {
                // The client starts over, so the filter does too.
                *lock(&hold_back) = parser.hold_back();
                deltas.send(ChatDelta::Reset);
            }
            other => deltas.send(other),
        })
    }

    /// Sends the text of the parsed answer that was held back.
    pub(super) fn finish(self, answer: &TextAnswer) {
        let hold_back = lock(&self.hold_back);
        let rest = hold_back.rest_of(answer);
        if !rest.is_empty() {
            self.deltas.send(ChatDelta::Text(rest));
        }
    }
}

fn lock(hold_back: &Mutex<HoldBack>) -> MutexGuard<'_, HoldBack> {
    // No code that can panic runs under the lock, so a poisoned filter is still consistent.
    hold_back.lock().unwrap_or_else(PoisonError::into_inner)
}
