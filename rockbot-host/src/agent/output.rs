//! A request whose answer has a type. It gives the outcome with the value, or a stream: the value
//! as far as it is written, and the whole value at the end.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt as _};
use rockbot_core::TurnId;
use rockbot_core::turn::{TurnOutcome, TurnProgress};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AgentRequest;
use super::answer::{AnswerKind as _, Typed, WithOutcome};
use super::partial_json::complete;
use super::stream::TurnStream;
use crate::engine::TurnError;

impl<T> AgentRequest<Typed<T>>
where
    T: DeserializeOwned + Send + 'static,
{
    /// Makes the answer a pair: the value, and the outcome of the turn with its calls and its cost.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says(r#"{"value": ["tea", "coffee"]}"#);
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let request = host.agent().ask("kitchen", "What is left?").output::<Vec<String>>();
    /// let (left, outcome) = request.with_outcome().await?;
    /// assert_eq!((left.len(), outcome.model_calls), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_outcome(self) -> AgentRequest<WithOutcome<T>> {
        self.with_answer(WithOutcome)
    }

    /// Sends the message and returns a stream of the turn's progress: the parts of the answer that
    /// the model has written so far, as JSON, and at last the value.
    ///
    /// Outside a tokio runtime the stream has an error alone, like the stream of
    /// [`Agent::stream`](crate::Agent::stream).
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::{AgentHost, OutputProgress};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says(r#"{"value": ["tea", "coffee"]}"#);
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let mut list = host.agent().ask("kitchen", "What is left?").output::<Vec<String>>().stream();
    /// while let Some(progress) = list.next().await {
    ///     match progress? {
    ///         OutputProgress::Partial(so_far) => println!("{so_far}"),
    ///         OutputProgress::Final { value, .. } => assert_eq!(value, ["tea", "coffee"]),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> OutputStream<T> {
        OutputStream::new(self.agent.stream_checked(self.request, self.validators), self.answer)
    }
}

/// A stream of a turn's progress towards an answer of type `T`. It ends with
/// [`OutputProgress::Final`] or an error.
///
/// Dropping it leaves the turn alone, as dropping a [`TurnStream`] does.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct OutputStream<T> {
    turn: TurnStream,
    answer: WithOutcome<T>,
    so_far: PartialAnswer,
}

/// A progress report of a turn with an answer of type `T`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OutputProgress<T> {
    /// Answer as far as the model has written it. Strings may be cut; numbers, members and elements
    /// that are not complete are missing. The members that `T` requires may be missing, too, hence a
    /// JSON value and not a `T`.
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

    /// Makes dropping the stream cancel the turn, as [`TurnStream::cancel_on_drop`] does.
    ///
    /// ```
    /// # use rockbot_host::{Agent, TurnError};
    /// # async fn colours(agent: &Agent) -> Result<(), TurnError> {
    /// let request = agent.ask("main", "Which colours go with red?").output::<Vec<String>>();
    /// let mut colours = request.stream().cancel_on_drop();
    /// while let Some(progress) = colours.next().await {
    ///     println!("{:?}", progress?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_on_drop(mut self) -> Self {
        self.turn = self.turn.cancel_on_drop();
        self
    }

    /// Returns the id of the turn.
    pub fn turn_id(&self) -> &TurnId {
        self.turn.turn_id()
    }
}

impl<T: DeserializeOwned + Send + 'static> OutputStream<T> {
    /// Returns the next report; `None` after the last report. No report is lost when the future is
    /// dropped.
    pub async fn next(&mut self) -> Option<Result<OutputProgress<T>, TurnError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
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
    /// Appends `text`, and returns the value of all text so far if it differs from the last value.
    fn push(&mut self, text: &str, is_wrapped: bool) -> Option<Value> {
        self.text.push_str(text);
        // Parsed once for each 3 % of growth: after every piece, the work would be quadratic in a long
        // answer.
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
