//! A turn with an answer of a type, as a stream: the answer as far as it is written, then the value.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt as _};
use rockbot_core::turn::{TurnOutcome, TurnProgress};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::{AnswerKind as _, Typed, WithOutcome};
use super::partial_json::complete;
use super::stream::TurnStream;
use crate::engine::TurnError;

/// A stream of a turn's progress towards an answer of type `T`. It ends with [`OutputProgress::Final`] or an error.
///
/// Dropping it cancels the turn, as dropping a [`TurnStream`] does.
#[derive(Debug)]
#[must_use = "dropping the stream cancels the turn"]
pub struct OutputStream<T> {
    turn: TurnStream,
    answer: WithOutcome<T>,
    so_far: PartialAnswer,
}

/// A progress report of a turn with an answer of type `T`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OutputProgress<T> {
    /// Answer as far as the model has written it. Strings may be cut; numbers, members and elements that are not
    /// complete are missing. The members that `T` requires may be missing, too, hence a JSON value and not a `T`.
    Partial(Value),
    /// Any other report of the turn. After [`TurnProgress::Retract`] the model starts the answer over.
    Turn(TurnProgress),
    /// End of the turn; no report follows.
    Final {
        /// Answer.
        value: T,
        /// Outcome of the turn.
        outcome: TurnOutcome,
    },
}

/// The text of an answer that is being written.
#[derive(Debug, Default)]
struct PartialAnswer {
    text: String,
    /// Length of the text when it was last parsed.
    parsed: usize,
    last: Option<Value>,
}

impl<T> OutputStream<T> {
    pub(super) fn new(turn: TurnStream, answer: Typed<T>) -> Self {
        Self {
            turn,
            answer: WithOutcome(answer),
            so_far: PartialAnswer::default(),
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> Stream for OutputStream<T> {
    type Item = Result<OutputProgress<T>, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let progress = match ready!(this.turn.poll_next_unpin(cx)) {
                Some(Ok(progress)) => progress,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            let item = match progress {
                TurnProgress::Delta(text) => match this.so_far.push(&text, this.answer.0.is_wrapped()) {
                    Some(value) => Ok(OutputProgress::Partial(value)),
                    None => continue,
                },
                TurnProgress::Final(outcome) => {
                    let read = this.answer.of(outcome);
                    read.map(|(value, outcome)| OutputProgress::Final { value, outcome })
                }
                other => {
                    // Text before a tool call was no answer.
                    if matches!(other, TurnProgress::Retract | TurnProgress::ToolStarted { .. }) {
                        this.so_far = PartialAnswer::default();
                    }
                    Ok(OutputProgress::Turn(other))
                }
            };
            return Poll::Ready(Some(item));
        }
    }
}

impl PartialAnswer {
    /// Appends `text`, and returns the value of all text so far if it differs from the last one.
    fn push(&mut self, text: &str, is_wrapped: bool) -> Option<Value> {
        self.text.push_str(text);
        // Parsed once for each 3 % of growth: after every piece, the work would be quadratic in a long answer.
        if self.text.len() < self.parsed + self.parsed / 32 {
            return None;
        }
        self.parsed = self.text.len();
        let value = complete(&self.text)?;
        let value = match (is_wrapped, value) {
            (true, Value::Object(mut object)) => object.remove("value")?,
            (_, value) => value,
        };
        let is_new = self.last.as_ref() != Some(&value);
        is_new.then(|| self.last.insert(value).clone())
    }
}
