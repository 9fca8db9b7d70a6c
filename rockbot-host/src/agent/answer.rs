//! The kinds of answers to a request: the outcome itself, or a value of a type.

use std::fmt;
use std::marker::PhantomData;

use rockbot_core::chat::OutputSchema;
use rockbot_core::turn::{TurnOutcome, TurnStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::engine::TurnError;

/// The kind of answer that an [`AgentRequest`](super::AgentRequest) has when it is awaited:
/// [`Reply`], [`Typed`] or [`WithOutcome`]. Implemented here alone.
pub trait AnswerKind: sealed::Sealed + Send + Sync + 'static {
    /// Type of the answer.
    type Value: Send;

    /// Returns the answer of a turn that ended with `outcome`.
    ///
    /// # Errors
    ///
    /// Returns an error if the outcome is no answer, or no answer of this kind.
    #[doc(hidden)]
    fn of(&self, outcome: TurnOutcome) -> Result<Self::Value, TurnError>;
}

/// The answer as the outcome of its turn, which displays as its text.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Reply;

/// The answer as a value of type `T`.
pub struct Typed<T> {
    /// Name of the type, for errors.
    expected: String,
    /// `true` if the JSON of the answer is `{"value": T}`.
    is_wrapped: bool,
    value: PhantomData<fn() -> T>,
}

/// The answer as a value of type `T`, together with the outcome of its turn.
#[derive(Debug)]
pub struct WithOutcome<T>(pub(super) Typed<T>);

// Not all providers accept a schema other than an object's.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    /// The answer.
    value: T,
}

impl<T: DeserializeOwned + JsonSchema> Typed<T> {
    /// Creates the kind, and the schema that the model's answer must match.
    pub(super) fn new() -> (Self, OutputSchema) {
        let schema = OutputSchema::of::<T>();
        let expected = schema.name.clone();
        let is_wrapped = !schema.is_object();
        let typed = Self {
            expected,
            is_wrapped,
            value: PhantomData,
        };
        if is_wrapped {
            (typed, OutputSchema::of::<Wrapped<T>>())
        } else {
            (typed, schema)
        }
    }
}

impl<T> Typed<T> {
    pub(super) fn is_wrapped(&self) -> bool {
        self.is_wrapped
    }
}

impl<T: DeserializeOwned> Typed<T> {
    /// Reads the value of an answer. A refusal in words is no answer.
    fn read(&self, outcome: &TurnOutcome) -> Result<T, TurnError> {
        if outcome.status == TurnStatus::Refused {
            return Err(TurnError::Unanswered(Box::new(outcome.clone())));
        }
        let json = &outcome.text;
        let read = if self.is_wrapped {
            serde_json::from_str(json).map(|Wrapped { value }| value)
        } else {
            serde_json::from_str(json)
        };
        let expected = || self.expected.clone();
        read.map_err(|cause| TurnError::Output {
            expected: expected(),
            cause,
        })
    }
}

impl<T> fmt::Debug for Typed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.expected).finish()
    }
}

impl AnswerKind for Reply {
    type Value = TurnOutcome;

    fn of(&self, outcome: TurnOutcome) -> Result<TurnOutcome, TurnError> {
        match outcome.status {
            TurnStatus::Parked(_) => Err(TurnError::NeedsApproval(Box::new(outcome))),
            _ if outcome.is_answer() => Ok(outcome),
            _ => Err(TurnError::Unanswered(Box::new(outcome))),
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> AnswerKind for Typed<T> {
    type Value = T;

    fn of(&self, outcome: TurnOutcome) -> Result<T, TurnError> {
        self.read(&Reply.of(outcome)?)
    }
}

impl<T: DeserializeOwned + Send + 'static> AnswerKind for WithOutcome<T> {
    type Value = (T, TurnOutcome);

    fn of(&self, outcome: TurnOutcome) -> Result<(T, TurnOutcome), TurnError> {
        let outcome = Reply.of(outcome)?;
        Ok((self.0.read(&outcome)?, outcome))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Reply {}
    impl<T> Sealed for super::Typed<T> {}
    impl<T> Sealed for super::WithOutcome<T> {}
}
