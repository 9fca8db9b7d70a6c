//! What people see of a turn's answers: all of it, or what a filter lets through.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::chat::{ChatDelta, DeltaSink};
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress};

use super::TurnDriver;
use crate::answer::{AnswerFilter, FilteredAnswer, filter_answer};
use crate::turn::Turn;

/// What people read of an answer whose filter broke down.
const WITHHELD: &str = "The answer is not shown: what checks answers broke down. Its log says why.";

impl TurnDriver {
    /// The filter for a turn's answers, if there is one. An answer in a shape is for a program.
    pub(super) fn filter_of(&self, turn: &Turn) -> Option<&Arc<dyn AnswerFilter>> {
        self.filter.as_ref().filter(|_| turn.request().output.is_none())
    }

    /// The outcome as people may see it.
    pub(crate) fn shown(&self, turn: &Turn, outcome: TurnOutcome) -> TurnOutcome {
        let Some(filter) = self.filter_of(turn) else {
            return outcome;
        };
        let filter = AssertUnwindSafe(|| filter_answer(&**filter, &said(turn), &outcome.text));
        let text = match catch_unwind(filter) {
            Ok(text) if text.trim().is_empty() => "The answer held nothing that may be shown.".to_owned(),
            Ok(text) => text,
            Err(_) => {
                tracing::error!(turn = %turn.id(), "the answer filter panicked");
                WITHHELD.to_owned()
            }
        };
        TurnOutcome { text, ..outcome }
    }
}

/// What people said in the turn so far.
fn said(turn: &Turn) -> String {
    turn.said_by_user().collect::<Vec<_>>().join("\n")
}

/// Reports the pieces of one answer to whoever listens.
#[derive(Clone)]
pub(super) struct Pieces {
    progress: ProgressSink,
    checked: Option<Arc<Mutex<Checked>>>,
}

/// An answer that a filter looks at.
struct Checked {
    filter: Arc<dyn AnswerFilter>,
    said: String,
    text: Box<dyn FilteredAnswer>,
    reasoning: Box<dyn FilteredAnswer>,
}

impl Pieces {
    pub(super) fn new(progress: ProgressSink, filter: Option<&Arc<dyn AnswerFilter>>, turn: &Turn) -> Self {
        let checked = filter.map(|filter| Arc::new(Mutex::new(Checked::new(filter.clone(), said(turn)))));
        Self { progress, checked }
    }

    pub(super) fn sink(&self) -> DeltaSink {
        let pieces = self.clone();
        DeltaSink::new(move |delta| match delta {
            ChatDelta::Text(text) => pieces.text(pieces.check(text, |checked| checked.text.push(text))),
            ChatDelta::Reasoning(text) => pieces.reasoning(pieces.check(text, |checked| checked.reasoning.push(text))),
            ChatDelta::Reset => {
                pieces.check("", Checked::restart);
                pieces.progress.send(|| TurnProgress::Retract);
            }
            // A call is reported when it runs: this one may still be cut.
            _ => {}
        })
    }

    /// The answer has ended: what was held back is shown.
    pub(super) fn end(&self) {
        self.reasoning(self.check("", |checked| checked.reasoning.finish()));
        self.text(self.check("", |checked| checked.text.finish()));
    }

    /// What `look` lets through, or all of `text` when nobody looks.
    fn check(&self, text: &str, look: impl FnOnce(&mut Checked) -> String) -> String {
        match &self.checked {
            None => text.to_owned(),
            // A filter that panicked has ended the answer already.
            Some(checked) => look(&mut checked.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn text(&self, text: String) {
        if !text.is_empty() {
            self.progress.send(|| TurnProgress::Delta(text));
        }
    }

    fn reasoning(&self, text: String) {
        if !text.is_empty() {
            self.progress.send(|| TurnProgress::Reasoning(text));
        }
    }
}

impl Checked {
    fn new(filter: Arc<dyn AnswerFilter>, said: String) -> Self {
        Self {
            text: filter.begin(&said),
            reasoning: filter.begin(&said),
            filter,
            said,
        }
    }

    /// The model begins again; nothing is left to show.
    fn restart(&mut self) -> String {
        (self.text, self.reasoning) = (self.filter.begin(&self.said), self.filter.begin(&self.said));
        String::new()
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces")
            .field("checked", &self.checked.is_some())
            .finish_non_exhaustive()
    }
}
