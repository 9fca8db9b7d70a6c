//! The answer filter at the two places where users see an answer: in the outcome, and piece by
//! piece while it comes.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::chat::{ChatDelta, DeltaSink};
use rockbot_core::content::Content;
use rockbot_core::support::caught;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress};

use crate::answer::{AnswerFilter, FilteredAnswer, filter_answer};
use crate::turn::Turn;

/// Text that users see instead of an answer whose filter panicked. The answer itself is withheld,
/// because it may hold the text that the filter was to remove.
const WITHHELD: &str =
    "The answer is withheld because the answer filter failed; see the log of the agent for the cause.";

/// Text that users see instead of an answer if the filter removed all of it.
const EMPTY: &str = "The answer is withheld because the answer filter removed all of it.";

/// The filter of a host's answers, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct OutputFilter(Option<Arc<dyn AnswerFilter>>);

impl OutputFilter {
    /// Creates a filter; if it is `None`, answers pass unchanged.
    pub(crate) fn new(filter: Option<Arc<dyn AnswerFilter>>) -> Self {
        Self(filter)
    }

    /// Returns the outcome as users may see it.
    pub(crate) fn apply(&self, turn: &Turn, mut outcome: TurnOutcome) -> TurnOutcome {
        // The texts of the host and of its program, such as errors and refusals, have addresses that
        // people need.
        let Some(filter) = self.for_turn(turn).filter(|_| turn.ends_with_foreign_text()) else {
            return outcome;
        };
        // A filter is the user's code: its panic must not let the answer through.
        let filter = AssertUnwindSafe(|| filter_answer(&**filter, &user_text(turn), &outcome.text));
        outcome.text = match caught(catch_unwind(filter)) {
            Ok(text) if text.trim().is_empty() => {
                outcome.media.clear();
                EMPTY.to_owned()
            }
            Ok(text) => text,
            Err(_) => {
                outcome.media.clear();
                tracing::error!(turn = %turn.id(), "answer filter panicked; the answer is withheld");
                WITHHELD.to_owned()
            }
        };
        outcome
    }

    /// Returns a stream that reports the pieces of one answer to `progress`, filtered.
    pub(super) fn stream(&self, progress: ProgressSink, turn: &Turn) -> AnswerStream {
        let filter = self.for_turn(turn);
        let filter = filter.map(|filter| Arc::new(Mutex::new(StreamFilter::new(filter.clone(), user_text(turn)))));
        AnswerStream {
            progress,
            filter,
            received: Arc::default(),
        }
    }

    /// Returns the filter for a turn's answers. An answer in a schema is for a program, and is not
    /// filtered.
    fn for_turn(&self, turn: &Turn) -> Option<&Arc<dyn AnswerFilter>> {
        self.0.as_ref().filter(|_| turn.request().output.is_none())
    }
}

/// Returns the user's messages of the turn so far. A filter lets the user's own words through.
fn user_text(turn: &Turn) -> String {
    turn.said_by_user().map(Content::text).collect::<Vec<_>>().join("\n")
}

/// The pieces of one answer on their way to the caller.
#[derive(Clone)]
pub(super) struct AnswerStream {
    progress: ProgressSink,
    /// Shared with the sink that the model client holds. Locked for one piece at a time, never across
    /// an await.
    filter: Option<Arc<Mutex<StreamFilter>>>,
    /// Number of bytes of all pieces, including the pieces of attempts that were taken back: all
    /// are paid for.
    received: Arc<AtomicU64>,
}

/// The filter of one streamed answer, with the state of its text and of its reasoning.
struct StreamFilter {
    filter: Arc<dyn AnswerFilter>,
    user_text: String,
    text: Box<dyn FilteredAnswer>,
    reasoning: Box<dyn FilteredAnswer>,
}

impl AnswerStream {
    /// Returns the sink that the model client writes the pieces to.
    pub(super) fn sink(&self) -> DeltaSink {
        let stream = self.clone();
        DeltaSink::new(move |delta| match delta {
            ChatDelta::Text(text) => {
                stream.count(text);
                stream.send_text(stream.filter(text, |filter| filter.text.push(text)));
            }
            ChatDelta::Reasoning(text) => {
                stream.count(text);
                stream.send_reasoning(stream.filter(text, |filter| filter.reasoning.push(text)));
            }
            ChatDelta::Reset => {
                stream.filter("", StreamFilter::restart);
                stream.progress.send(|| TurnProgress::Retract);
            }
            // A tool call is reported when it runs: a call of an unfinished answer may never do so.
            _ => {}
        })
    }

    /// Returns the number of bytes that the model has written so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Counts a piece. `Relaxed`: the number orders no other data.
    fn count(&self, piece: &str) {
        self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }

    /// Reports the text that the filter held back until the end of the answer.
    pub(super) fn finish(&self) {
        self.send_reasoning(self.filter("", |filter| filter.reasoning.finish()));
        self.send_text(self.filter("", |filter| filter.text.finish()));
    }

    /// Returns what `apply` lets through, or all of `text` when there is no filter.
    fn filter<'a>(&self, text: &'a str, apply: impl FnOnce(&mut StreamFilter) -> String) -> Cow<'a, str> {
        match &self.filter {
            None => Cow::Borrowed(text),
            // Poisoned by a panic of the filter, which ended the answer already.
            Some(filter) => Cow::Owned(apply(&mut filter.lock().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    fn send_text(&self, text: Cow<'_, str>) {
        if !text.is_empty() {
            self.progress.send(|| TurnProgress::Delta(text.into_owned()));
        }
    }

    fn send_reasoning(&self, text: Cow<'_, str>) {
        if !text.is_empty() {
            self.progress.send(|| TurnProgress::Reasoning(text.into_owned()));
        }
    }
}

impl StreamFilter {
    fn new(filter: Arc<dyn AnswerFilter>, user_text: String) -> Self {
        Self {
            text: filter.begin(&user_text),
            reasoning: filter.begin(&user_text),
            filter,
            user_text,
        }
    }

    /// Starts over, because the model does. Returns nothing to show.
    fn restart(&mut self) -> String {
        (self.text, self.reasoning) = (self.filter.begin(&self.user_text), self.filter.begin(&self.user_text));
        String::new()
    }
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream")
            .field("filtered", &self.filter.is_some())
            .finish_non_exhaustive()
    }
}
